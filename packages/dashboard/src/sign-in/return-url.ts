import { base } from '../api/scope.ts'

/** Most characters of a page that a sign-in at an issuer returns to; the service refuses longer ones (`pageUrlLengthMax` in `people/pages.ts`). */
export const returnUrlLengthMax = 512

/** Returns the URL that an issuer redirects to: the page, without its filters if it would be too long, or the first page. */
export function returnUrl(origin: string, to: string): string {
  const [path = base] = to.split(/[?#]/)
  return [to, path].map((page) => origin + page).find(({ length }) => length <= returnUrlLengthMax) ?? origin + base
}

import { WebhookVerificationError } from './error.ts'

/** Headers as Fetch has them (`request.headers`), or as Node has them (`req.headers`), names in any case. */
export type ReceivedHeaders =
  | { get(name: string): string | null }
  | { readonly [name: string]: string | readonly string[] | undefined }

/**
 * The value of a header, or `undefined` if it is absent. Throws `header-repeated` if it occurs more than once,
 * because two parties could then check different values.
 */
export function headerOf(headers: ReceivedHeaders, name: string): string | undefined {
  if (isFetchHeaders(headers)) return headers.get(name) ?? undefined
  const values = Object.entries(headers).flatMap(([key, value]) =>
    key.toLowerCase() === name && value !== undefined ? value : [],
  )
  if (values.length > 1) throw new WebhookVerificationError('header-repeated')
  return values[0]
}

function isFetchHeaders(headers: ReceivedHeaders): headers is { get(name: string): string | null } {
  return typeof headers.get === 'function'
}

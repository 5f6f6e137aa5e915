import type { Operation } from '../operation.ts'
import type { RawAnswer } from './call.ts'

/**
 * What a page of any origin may read: answers that a token, a link or a public address opens. Nothing here is opened by a cookie, so
 * that no credentials are named, and a browser sends none.
 */
export const crossOriginHeaders = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': '*',
} as const

/** The longest that any browser keeps the answer to a preflight. */
const preflightSeconds = 86_400

/** The answer to a preflight. `Authorization` is named, because the wildcard does not stand for it (Fetch, section 3.3.3). */
export function preflightAnswer(methods: readonly string[]): RawAnswer {
  return {
    status: 204,
    headers: {
      'access-control-allow-methods': methods.join(', '),
      'access-control-allow-headers': '*, Authorization',
      'access-control-max-age': String(preflightSeconds),
    },
    body: '',
  }
}

/** The paths that pages of any origin may call, with their methods: public pages, and what takes somebody without an API key. */
export function crossOriginMethods({
  pages,
  operations,
}: {
  readonly pages: readonly { readonly path: string; readonly crossOrigin?: true }[]
  readonly operations: readonly Operation[]
}): ReadonlyMap<string, readonly string[]> {
  const methods = new Map<string, string[]>(
    pages.filter(({ crossOrigin }) => crossOrigin).map(({ path }) => [path, ['GET']]),
  )
  for (const { guests, path, method } of operations)
    if (guests !== undefined) methods.set(path, [...(methods.get(path) ?? []), method])
  return methods
}

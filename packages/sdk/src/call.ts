import type { Method, RequestOptions, Send } from './transport.ts'

/**
 * Sends and answers the body alone, taken at its word: it has the form that the service's OpenAPI document promises for
 * the operation. What money hangs on is read member by member instead, in payments.ts.
 */
export async function call<T>(send: Send, method: Method, to: string, options?: RequestOptions): Promise<T> {
  const { body } = await send(method, to, options)
  return body as T
}

/** A path whose parameters are escaped, so that an id can never become another path. */
export function path(parts: TemplateStringsArray, ...values: readonly string[]): string {
  return parts.reduce((built, part, index) => built + segment(values[index - 1]) + part)
}

function segment(value = ''): string {
  if (value === '' || value === '.' || value === '..') throw new TypeError('An id in a path must not be empty.')
  return encodeURIComponent(value)
}

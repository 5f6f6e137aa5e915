import { must, mustKnow } from './check.ts'
import { UnavailableError } from './errors.ts'
import type { operations } from './generated/openapi.ts'
import type { Query } from './operations.ts'
import type { CallOptions, QueryValue, Send, ServiceResponse } from './transport.ts'

export interface Page<T> {
  readonly items: readonly T[]
  /** The cursor of the next page. Undefined on the last. */
  readonly cursor: string | undefined
}

/**
 * A list of any length. `for await (const item of list)` fetches pages as they are read.
 *
 * @example
 * import { createPurser } from '@purser/sdk'
 *
 * const purser = createPurser({ apiKey: process.env.PURSER_API_KEY ?? '', baseUrl: 'https://pay.example.com' })
 * for await (const event of purser.events.list()) console.log(event.type)
 */
export interface Listing<T> extends AsyncIterable<T> {
  /** Returns one page, from the cursor of the query. */
  page(): Promise<Page<T>>
  /** Returns at most `limit` items, from as many pages as needed. */
  toArray(bound: { readonly limit: number }): Promise<T[]>
}

/** The query parameters that all lists have: the page size (at most 500, default 50) and the cursor. */
export type PageQuery = Query<operations['wallets.byo.list']>

/**
 * A listing that follows `Link: <…>; rel="next"` (RFC 8288). Only the cursor of the link is used, so that no response
 * can send the API key to another host.
 */
export function listing<T>(send: Send, path: string, query: object = {}, options: CallOptions = {}): Listing<T> {
  const load = async (cursor?: string): Promise<Page<T>> => {
    const own: Record<string, QueryValue> = { ...query }
    return pageOf<T>(await send('GET', path, { ...options, query: cursor === undefined ? own : { ...own, cursor } }))
  }
  async function* items(): AsyncGenerator<T> {
    let page = await load()
    while (true) {
      yield* page.items
      if (page.cursor === undefined) return
      page = await load(page.cursor)
    }
  }
  const toArray = async (bound: { readonly limit: number }): Promise<T[]> => {
    mustKnow(bound, { limit: true }, 'The argument of toArray')
    const { limit } = bound
    must(typeof limit === 'number' && limit >= 0, 'limit', limit, 'Give the most items to return, such as 100.')
    const batched: T[] = []
    if (limit <= 0) return batched
    for await (const item of items()) if (batched.push(item) >= limit) break
    return batched
  }
  return { page: () => load(), toArray, [Symbol.asyncIterator]: items }
}

/**
 * Yields a list as CSV, page after page. The parts make one file when joined: only the first one has the row of column names.
 */
export async function* csvParts(
  send: Send,
  path: string,
  query: object = {},
  options: CallOptions = {},
): AsyncGenerator<string> {
  let cursor: string | undefined
  for (let isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const requested: Record<string, QueryValue> = { ...query, ...(cursor !== undefined && { cursor }) }
    const { body, headers, status } = await send('GET', path, { ...options, query: requested, accept: 'text/csv' })
    if (typeof body !== 'string')
      throw new UnavailableError('The response is not CSV.', { status, code: 'unreadable-answer' })
    yield isFirst ? body : body.slice(body.indexOf('\r\n') + 2)
    cursor = nextCursor(headers.get('link'))
  }
}

function pageOf<T>(response: ServiceResponse): Page<T> {
  const { body, headers, status } = response
  if (!Array.isArray(body))
    throw new UnavailableError('The response is not a list.', { status, code: 'unreadable-answer' })
  return { items: body, cursor: nextCursor(headers.get('link')) }
}

/** The `cursor` of the link with relation `next`, or undefined if there is none. */
export function nextCursor(link: string | null): string | undefined {
  for (const [, target = '', parameters = ''] of (link ?? '').matchAll(/<([^>]*)>([^<]*)/g)) {
    if (!/;\s*rel="?(?:[^";]*\s)?next(?:\s[^";]*)?"?\s*(?:[;,]|$)/i.test(parameters)) continue
    const query = target.split('#')[0]?.split('?')[1] ?? ''
    return new URLSearchParams(query).get('cursor') ?? undefined
  }
  return undefined
}

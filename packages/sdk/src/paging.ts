import { UnavailableError } from './errors.ts'
import type { operations } from './generated/openapi.ts'
import type { Query } from './operations.ts'
import type { Answer, CallOptions, QueryValue, Send } from './transport.ts'

export interface Page<T> {
  readonly items: readonly T[]
  /** The cursor of the next page; undefined on the last. */
  readonly cursor: string | undefined
}

/**
 * A list of any length: `for await (const item of list)` asks for one page after another, only as far as it is read.
 */
export interface Listing<T> extends AsyncIterable<T> {
  /** One page, from the query's own cursor. */
  page(): Promise<Page<T>>
  /** At most `limit` items, over as many pages as that takes. */
  toArray(bound: { readonly limit: number }): Promise<T[]>
}

/** The part of a list's query that every list has: items on one page (at most 500, 50 when left out) and where it begins. */
export type PageQuery = Query<operations['wallets.byo.list']>

/**
 * A listing over `Link: <…>; rel="next"` (RFC 8288). Of the link only the cursor is used, on our own address, so that
 * no answer can send the API key to another host.
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
  const toArray = async ({ limit }: { readonly limit: number }): Promise<T[]> => {
    const gathered: T[] = []
    if (limit <= 0) return gathered
    for await (const item of items()) if (gathered.push(item) >= limit) break
    return gathered
  }
  return { page: () => load(), toArray, [Symbol.asyncIterator]: items }
}

function pageOf<T>(answer: Answer): Page<T> {
  const { body, headers, status } = answer
  if (!Array.isArray(body))
    throw new UnavailableError('The answer is not a list.', { status, code: 'unreadable-answer' })
  return { items: body, cursor: nextCursor(headers.get('link')) }
}

/** The `cursor` of the link whose relation is `next`; undefined when there is none. */
export function nextCursor(link: string | null): string | undefined {
  for (const [, target = '', parameters = ''] of (link ?? '').matchAll(/<([^>]*)>([^<]*)/g)) {
    if (!/;\s*rel="?(?:[^";]*\s)?next(?:\s[^";]*)?"?\s*(?:[;,]|$)/i.test(parameters)) continue
    const query = target.split('#')[0]?.split('?')[1] ?? ''
    return new URLSearchParams(query).get('cursor') ?? undefined
  }
  return undefined
}

import { Readable } from 'node:stream'
import type { z } from 'zod'
import type { Deps } from '../ctx.ts'
import { EventStreamResponse } from '../event-streams/response.ts'
import { JsonStream } from '../json-stream.ts'
import { type Operation, type Page, Reply } from '../operation.ts'
import { csvHeaders, csvOf, prefersCsv } from './csv.ts'

/** A request as the HTTP library read it, before validation. */
export interface RawRequest {
  readonly method: string
  /** Path and query as sent. */
  readonly url: string
  readonly params: unknown
  readonly query: unknown
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: Uint8Array
  /** Replaces `body` for an operation that streams it. */
  readonly stream?: Readable | undefined
  /** Counts what the request costs beyond one token of the caller's rate limits; throws 429 beyond them. */
  readonly charge?: (cost: number) => void
}

export interface RawResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array | Readable | EventStreamResponse
  /** Set-Cookie fields, one for each cookie. */
  readonly cookies?: readonly string[]
  /** The outcome is still open: the response is not stored for its Idempotency-Key. */
  readonly isOpen?: boolean
  /** Nothing was committed: the Idempotency-Key is released, and a repeat runs again. */
  readonly runsAgain?: boolean
  /** The bytes of what was read for the body, if they are not those of the body. */
  readonly bytesRead?: number
  /** The bytes of a file that is streamed as it is read. */
  readonly fileBytes?: number
}

const noBody = new Uint8Array()

/** Returns the response to what an operation's handler returned. */
export function successResponse(operation: Operation<Deps>, request: RawRequest, result: unknown): RawResponse {
  const reply = result instanceof Reply ? result : undefined
  const status = reply?.status ?? operation.status ?? (operation.output === undefined ? 204 : 200)
  const headers: Record<string, string> = { ...reply?.headers }
  const value = reply === undefined ? result : reply.body
  if (value instanceof Readable && reply instanceof JsonStream)
    return { status, headers, body: value, bytesRead: reply.bytes }
  if (value instanceof Readable)
    return { status, headers, body: value, fileBytes: Number(headers['content-length'] ?? 0) }
  if (value instanceof EventStreamResponse) return { status, headers, body: value }
  if (operation.list === true && operation.output !== undefined) {
    const page = value as Page<unknown>
    const { output, csvName } = operation
    const { items, texts, next, bytesRead } = withinPage(page, output)
    if (next !== undefined) headers.link = `<${nextUrl(request.url, next)}>; rel="next"`
    if (csvName !== undefined) headers.vary = 'Accept'
    if (csvName !== undefined && prefersCsv(request.headers.accept))
      return { status, headers: { ...headers, ...csvHeaders(csvName) }, body: csvOf(output, items), bytesRead }
    return { status, headers: { ...headers, ...jsonType }, body: `[${texts.join(',')}]`, bytesRead }
  }
  const schema = operation.otherOutputs?.[status] ?? operation.output
  if (status === 204 || status === 304 || schema === undefined) return { status, headers, body: noBody }
  return {
    ...json(status, headers, schema.parse(value)),
    isOpen: reply?.isOpen === true,
    runsAgain: reply?.runsAgain === true,
  }
}

/** Most bytes of a page as JSON: a page of larger items has fewer of them, and at least one. */
const pageBytesMax = 1_048_576

/** Returns the items of a page up to its most bytes, also as JSON, and the estimated bytes of all that were read for it. */
function withinPage(page: Page<unknown>, output: z.ZodType) {
  const items: unknown[] = []
  const texts: string[] = []
  let bytes = 0
  for (const item of page.items) {
    const parsed = output.parse(item)
    const text = JSON.stringify(parsed)
    const more = Buffer.byteLength(text) + 1
    if (page.cursorAfter !== undefined && items.length > 0 && bytes + more > pageBytesMax) break
    bytes += more
    items.push(parsed)
    texts.push(text)
  }
  const isCut = items.length < page.items.length
  const next = isCut ? page.cursorAfter?.(items.length) : page.next
  const ofItems = isCut ? (bytes * page.items.length) / items.length : bytes
  return { items, texts, next, bytesRead: Math.max(ofItems, page.bytesRead ?? 0) }
}

const jsonType = { 'content-type': 'application/json; charset=utf-8' } as const

function json(status: number, headers: Readonly<Record<string, string>>, value: unknown): RawResponse {
  return { status, headers: { ...headers, ...jsonType }, body: JSON.stringify(value) }
}

/** Returns the address of a list's next page: that of the request, with another cursor. */
export function nextUrl(url: string, cursor: string): string {
  // Only the first question mark begins the query (RFC 3986, section 3.4): the values of filters can have others.
  const [path = '', ...query] = url.split('?')
  const parameters = new URLSearchParams(query.join('?'))
  parameters.set('cursor', cursor)
  return `${path}?${parameters.toString()}`
}

import { Readable } from 'node:stream'
import { Reply } from './operation.ts'

/**
 * A JSON response that is made while it is sent, in pieces. A response of any size takes little memory, and other requests are
 * served between the pieces. If a piece fails, the connection is cut, so that no client accepts a part as the whole.
 */
export class JsonStream extends Reply {
  /** About the bytes of the whole, for the caller's rate limits. */
  readonly bytes: number

  constructor(pieces: AsyncIterable<string>, bytes: number) {
    super(200, Readable.from(pieces, { objectMode: false }), { 'content-type': 'application/json; charset=utf-8' })
    this.bytes = bytes
  }
}

/** Returns the items of a JSON array as text, without its brackets, one piece for each page. */
export async function* itemsOf(pages: AsyncIterable<readonly unknown[]>): AsyncGenerator<string> {
  let separator = ''
  for await (const page of pages) {
    if (page.length === 0) continue
    yield separator + page.map((item) => JSON.stringify(item)).join(',')
    separator = ','
  }
}

/** Returns the members of a JSON object as text, without its closing brace, so that more can follow after a comma. */
export function openObject(value: object): string {
  return JSON.stringify(value).slice(0, -1)
}

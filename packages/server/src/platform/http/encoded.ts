import { hash } from 'node:crypto'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { namesTag, qualityOf } from './accept.ts'
import type { RawResponse } from './call.ts'
import type { PageRequest } from './public-page.ts'

/** A text that does not change while the process runs. */
interface Page {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A page with its ETag; each encoding is made once, when it is first requested. */
export type EncodedPage = (request: PageRequest) => RawResponse

const encoders = {
  br: (text: string): Uint8Array => brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } }),
  gzip: (text: string): Uint8Array => gzipSync(text),
} as const

/**
 * Answers with the encoding that the client accepts, and 304 without a body if the client has the page already. Clients revalidate on each use
 * (`no-cache`), so that a new version of the service is visible at once.
 */
function encodedPage({ headers: own, body }: Page): EncodedPage {
  const digest = hash('sha256', body, 'base64url').slice(0, 22)
  const encoded = new Map<string, Uint8Array>()
  return ({ headers: requested }) => {
    const encoding = (['br', 'gzip'] as const).find((one) => qualityOf(requested['accept-encoding'], one) > 0)
    const etag = `"${encoding === undefined ? digest : `${digest}-${encoding}`}"`
    const headers = {
      vary: 'Accept, Accept-Encoding',
      ...own,
      etag,
      'cache-control': 'public, no-cache',
      ...(encoding !== undefined && { 'content-encoding': encoding }),
    }
    if (namesTag(requested['if-none-match'], etag)) return { status: 304, headers: notModified(headers), body: '' }
    if (encoding === undefined) return { status: 200, headers, body }
    const bytes = encoded.get(encoding) ?? encoders[encoding](body)
    encoded.set(encoding, bytes)
    return { status: 200, headers, body: bytes }
  }
}

/** Returns a cache of pages with these headers, by name. Each is rendered on its first request. */
export function keptPages(headers: Page['headers']): (name: string, make: () => string) => EncodedPage {
  const kept = new Map<string, EncodedPage>()
  return (name, make) => {
    const page = kept.get(name) ?? encodedPage({ headers, body: make() })
    kept.set(name, page)
    return page
  }
}

function notModified(headers: Readonly<Record<string, string>>): Record<string, string> {
  const left = ['content-type', 'content-encoding']
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !left.includes(name)))
}

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { failPlatform, type Problem } from '../errors.ts'

/** Header fields that a request may have once. With two, a proxy and this service could read different ones. */
const single = ['host', 'authorization']
/** Most parameters of a query: those of a list, and each member of metadata. */
const parametersMax = 100

/**
 * The problem of a request whose request line or header section the service does not accept; undefined if there is none.
 *
 * - `bad-request`: a query with more than 100 parameters; no Host in HTTP/1.1, or two (RFC 9112 section 3.2); two Authorization; an expectation other than `100-continue` (RFC 9110 section
 *   10.1.1).
 * - `unsupported-media-type`: a body with a Content-Encoding (RFC 9110 section 15.5.16). None is decoded, so that a small one cannot become a large one.
 */
export function headFault(request: IncomingMessage & { readonly originalUrl?: string }): Problem | undefined {
  const { headers, rawHeaders, httpVersion } = request
  if (hasLongQuery(request.originalUrl ?? request.url ?? '')) return failPlatform('bad-request', { detail: longQuery })
  if (headers.host === undefined && httpVersion === '1.1') return failPlatform('bad-request')
  if (headers.expect !== undefined && headers.expect.toLowerCase() !== '100-continue')
    return failPlatform('bad-request')
  if (single.some((name) => occurrences(rawHeaders, name) > 1)) return failPlatform('bad-request')
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? ''
  const isEncoded = encoding !== '' && encoding !== 'identity'
  return isEncoded && announcesBody(headers) ? failPlatform('unsupported-media-type', { detail: encoded }) : undefined
}

const encoded = 'The service decodes no Content-Encoding. Send the body uncompressed.'

const longQuery = `The query must have at most ${parametersMax} parameters.`

/** The URL for the router, which parses the query before any check: without a query that `headFault` refuses. */
export function routedUrl(url: string): string {
  return hasLongQuery(url) ? url.slice(0, url.indexOf('?')) : url
}

function hasLongQuery(url: string): boolean {
  let at = url.indexOf('?')
  for (let count = 0; at >= 0; count += 1) {
    if (count === parametersMax) return true
    at = url.indexOf('&', at + 1)
  }
  return false
}

/** Whether a request has a body (RFC 9112 section 6.3). */
function announcesBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** Returns the number of fields with this name; `rawHeaders` has names and values in turn. */
function occurrences(rawHeaders: readonly string[], name: string): number {
  let count = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const field = rawHeaders[index]
    if (field?.length === name.length && field.toLowerCase() === name) count += 1
  }
  return count
}

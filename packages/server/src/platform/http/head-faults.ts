import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { failPlatform, type Problem } from '../errors.ts'

/** Header fields that a request may have once. With two, a proxy and this service could read different ones. */
const single = ['host', 'authorization']

/**
 * The problem of a request whose header section the service does not accept; undefined if there is none.
 *
 * - `bad-request`: no Host in HTTP/1.1, or two (RFC 9112 section 3.2); two Authorization; an expectation other than `100-continue` (RFC 9110 section
 *   10.1.1).
 * - `unsupported-media-type`: a body with a Content-Encoding (RFC 9110 section 15.5.16). None is decoded, so that a small one cannot become a large one.
 */
export function headFault({ headers, rawHeaders, httpVersion }: IncomingMessage): Problem | undefined {
  if (headers.host === undefined && httpVersion === '1.1') return failPlatform('bad-request')
  if (headers.expect !== undefined && headers.expect.toLowerCase() !== '100-continue')
    return failPlatform('bad-request')
  if (single.some((name) => occurrences(rawHeaders, name) > 1)) return failPlatform('bad-request')
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? ''
  const isEncoded = encoding !== '' && encoding !== 'identity'
  return isEncoded && announcesBody(headers) ? failPlatform('unsupported-media-type') : undefined
}

/** Whether a request has a body (RFC 9112 section 6.3). */
function announcesBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** How many fields have this name; `rawHeaders` has names and values in turn. */
function occurrences(rawHeaders: readonly string[], name: string): number {
  let count = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const field = rawHeaders[index]
    if (field?.length === name.length && field.toLowerCase() === name) count += 1
  }
  return count
}

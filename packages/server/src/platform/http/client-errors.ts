import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Deps } from '../ctx.ts'
import { failPlatform, type Problem } from '../errors.ts'
import { commonHeaders, newRequestId, problemResponse } from './call.ts'

/** Problem codes for Node's parser errors; any other error is invalid HTTP. */
const faults: Readonly<Record<string, 'request-timeout' | 'request-header-fields-too-large'>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'request-timeout',
  HPE_HEADER_OVERFLOW: 'request-header-fields-too-large',
}

/** Sends a problem record for an unreadable request and closes the connection, since the start of the next request is unknown. */
export function refuseUnread(
  deps: Pick<Deps, 'baseUrl' | 'clock' | 'log' | 'metrics' | 'random'>,
  error: Error & { readonly code?: string },
  socket: Socket,
): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
  const requestId = newRequestId(deps)
  const problem = failPlatform(faults[error.code ?? ''] ?? 'bad-request')
  deps.metrics.refusals.inc({ code: problem.code })
  const { status, headers, body } = problemResponse({ ...deps, requestId }, problem)
  const text = String(body)
  const head = {
    ...headers,
    'content-length': String(Buffer.byteLength(text)),
    ...commonHeaders(requestId),
    'cache-control': 'no-store',
    connection: 'close',
  }
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${text}`)
}

/** The problems for errors of the HTTP library, by their codes. */
const libraryFaults: Readonly<Record<string, Problem>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: failPlatform('payload-too-large'),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: failPlatform('bad-request'),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: failPlatform('unsupported-media-type'),
  FST_ERR_BAD_URL: failPlatform('not-found'),
  FST_ERR_MAX_PARAM_LENGTH: failPlatform('not-found'),
  FST_ERR_ASYNC_CONSTRAINT: failPlatform('bad-request'),
}

/** Returns the problem for an error of the HTTP library that the request caused, and any other error as it is. */
export function withoutLibraryFault(error: unknown): unknown {
  if (typeof error !== 'object' || error === null) return error
  const known = 'code' in error && typeof error.code === 'string' ? libraryFaults[error.code] : undefined
  if (known !== undefined) return known
  return 'statusCode' in error && error.statusCode === 400 ? failPlatform('bad-request', {}, error) : error
}

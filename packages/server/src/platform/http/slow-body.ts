import type { IncomingMessage, ServerResponse } from 'node:http'

/**
 * Calls `refuse` if a request's body is not complete within `msMax`: a slow sender occupies a connection and the memory of the received
 * part. A request without a body costs nothing.
 */
export function limitBodyTime(request: IncomingMessage, msMax: number, refuse: () => void): void {
  const { headers } = request
  if (headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0) return
  const timer = setTimeout(() => {
    if (!request.complete) refuse()
  }, msMax)
  const stop = (): void => clearTimeout(timer)
  request.once('end', stop).once('close', stop)
}

/**
 * Cuts the connection of a streamed body if nothing of it arrives for `msMax`. The total time is not limited: a gigabyte over a slow
 * connection takes an hour. Once the body has ended, the connection may be silent for `afterMs` (0: for any time).
 */
export function limitBodySilence(request: IncomingMessage, msMax: number, afterMs = 0): void {
  const cut = (): void => void request.destroy()
  request.setTimeout(msMax, cut)
  // The response may take longer than that, and the connection's next request has its own limits.
  request.once('end', () => request.setTimeout(afterMs).off('timeout', cut))
}

/** How long a body may still arrive after its request was answered, so that its sender receives the answer and not a reset. */
const lingerMs = 1_000

/** Cuts the connection of a request whose body is not complete soon after the response was sent. */
export function limitUnreadBody(request: IncomingMessage, response: ServerResponse): void {
  response.once('finish', () => {
    if (request.complete) return
    const timer = setTimeout(() => request.destroy(), lingerMs)
    request.once('close', () => clearTimeout(timer))
  })
}

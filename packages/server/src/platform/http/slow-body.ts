import type { IncomingMessage } from 'node:http'

/**
 * Calls `refuse` where a request's body is not there whole within `msMax`: a sender that drips holds a connection and what has
 * come of the body. A request without a body costs nothing.
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
 * Cuts the connection of a body that is read as it comes where nothing of it came for `msMax`. How long the whole of it takes is
 * the sender's affair: a gigabyte over a slow line takes an hour.
 */
export function limitBodySilence(request: IncomingMessage, msMax: number): void {
  const cut = (): void => void request.destroy()
  request.setTimeout(msMax, cut)
  // The answer may take longer than that, and the connection's next request has limits of its own.
  request.once('end', () => request.setTimeout(0).off('timeout', cut))
}

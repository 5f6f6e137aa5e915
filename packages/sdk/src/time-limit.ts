/** A signal that ends a request: with the caller's signal, or when its time is over. */
export interface TimeLimit {
  readonly signal: AbortSignal
  /** Call it when the request has ended: stops the timer, and no longer follows the caller's signal. */
  end(): void
}

/**
 * Limits a request to `timeoutMs` milliseconds. In place of `AbortSignal.any` with `AbortSignal.timeout`: Node 20 collects a timeout that only
 * `any` refers to, and then it never aborts.
 */
export function timeLimit(timeoutMs: number, signal: AbortSignal | undefined): TimeLimit {
  const own = new AbortController()
  const abort = () => own.abort(signal?.reason)
  const timer = setTimeout(
    () => own.abort(new DOMException('The time of the request is over.', 'TimeoutError')),
    timeoutMs,
  )
  signal?.addEventListener('abort', abort, { once: true })
  if (signal?.aborted === true) abort()
  return {
    signal: own.signal,
    end: () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
    },
  }
}

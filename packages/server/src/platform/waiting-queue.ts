import { failPlatform } from './errors.ts'

/** Limits of a queue: how long a caller waits, and how many callers wait. A caller beyond either limit gets 503 `service-unavailable`. */
export interface WaitLimits {
  readonly waitMsMax: number
  readonly waitingMax: number
}

/** The limits of a request that waits: as long as for a database connection, and few, because each has its request's body in memory. */
export const requestWaitLimits: WaitLimits = { waitMsMax: 10_000, waitingMax: 1_000 }

/**
 * Adds a waiter to the queue, and resolves when the owner of the queue calls it; it has then left the queue. With a signal one waits until it
 * is aborted, and its reason is thrown. Without a limit one waits until the turn comes.
 */
export async function waitForSlot(waiting: Set<() => void>, limit?: WaitLimits | AbortSignal): Promise<void> {
  if (limit instanceof AbortSignal) limit.throwIfAborted()
  else if (limit !== undefined && waiting.size >= limit.waitingMax) throw failPlatform('service-unavailable')
  return new Promise((resolve, reject) => {
    const admit = (): void => {
      stopWatching()
      waiting.delete(admit)
      resolve()
    }
    const stopWatching = whenReached(limit, (reason) => {
      waiting.delete(admit)
      reject(reason)
    })
    waiting.add(admit)
  })
}

/** Calls `leave` with the reason when the limit is reached. Returns what prevents the call. */
function whenReached(limit: WaitLimits | AbortSignal | undefined, leave: (reason: unknown) => void): () => void {
  if (limit === undefined) return () => undefined
  if (limit instanceof AbortSignal) {
    const onAbort = (): void => leave(limit.reason)
    limit.addEventListener('abort', onAbort, { once: true })
    return () => limit.removeEventListener('abort', onAbort)
  }
  const timer = setTimeout(() => leave(failPlatform('service-unavailable')), limit.waitMsMax)
  return () => clearTimeout(timer)
}

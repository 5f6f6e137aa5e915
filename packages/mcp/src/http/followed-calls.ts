import type { Waiting } from '../call.ts'
import type { RequestContext } from '../server.ts'

/** The running calls of one API key. */
export interface FollowedCalls {
  /** Follows a call to its end. `connection` aborts if its connection closes before the result was sent. */
  readonly follow: (request: RequestContext, connection: AbortSignal | undefined) => Waiting
  /** Notes that a client canceled the request with this id. */
  readonly cancel: (id: string | number) => void
}

interface FollowedCall {
  isCanceled: boolean
  /** Kept until the call ends: Node collects the sources of `AbortSignal.any` that nothing refers to, and then no abort arrives. */
  readonly sources: readonly unknown[]
}

/**
 * Before protocol 2026-07-28 a client cancels with a message of its own, on another connection. Two clients with one
 * API key may use the same request id, so no call is stopped: its result counts as lost, and its generated
 * Idempotency-Key stays open for an equal call.
 */
export function followCalls(): FollowedCalls {
  const running = new Map<string | number, Set<FollowedCall>>()
  return {
    follow({ id, signal: own }, connection) {
      const signal = connection === undefined ? own : AbortSignal.any([own, connection])
      const call: FollowedCall = { isCanceled: false, sources: [own, connection] }
      const calls = running.get(id) ?? new Set()
      running.set(id, calls.add(call))
      const end = () => {
        calls.delete(call)
        if (calls.size === 0) running.delete(id)
      }
      return { signal, isLost: () => signal.aborted || call.isCanceled, end }
    },
    cancel(id) {
      for (const call of running.get(id) ?? []) call.isCanceled = true
    },
  }
}

import type { Clock } from '../../platform/clock.ts'
import type { RpcCall } from './responses.ts'

/** Milliseconds for which a receipt counts as long, and for which a node is not queried for one that it did not deliver. */
const rememberedMs = 600_000
/** Most receipts that are remembered; above it the oldest is forgotten. */
const receiptsMax = 10_000

/** `long`: it is requested by itself, after other calls. `unread`: the node did not deliver it so either, and is not queried for it. */
type Length = 'usual' | 'long' | 'unread'

interface Remembered {
  readonly length: Length
  readonly untilMs: number
  /** The time at which it was last requested by itself, in milliseconds; 0 if it was not. */
  readonly triedMs: number
}

/** The receipts that were found to be long at a node, for ten minutes. Other calls are always `usual`. */
export interface LongReceipts {
  lengthOf(url: string, call: RpcCall): Length
  /** Records that the call has a long response. */
  markLong(url: string, call: RpcCall): void
  /** Records that the call was requested by itself. */
  markTried(url: string, call: RpcCall, outcome: 'read' | 'unread'): void
  /** Returns the time at which the call was last requested by itself, in milliseconds; 0 if it was not. */
  triedMs(url: string, call: RpcCall): number
}

export function createLongReceipts(clock: Clock, onUnread?: (url: string, hash: unknown) => void): LongReceipts {
  const known = new Map<string, Remembered>()
  const nowMs = (): number => clock.now().getTime()
  const keyOf = (url: string, { params }: RpcCall): string => `${url} ${String(params[0]).toLowerCase()}`
  const find = (url: string, call: RpcCall): Remembered | undefined => {
    const found = isReceipt(call) ? known.get(keyOf(url, call)) : undefined
    return found !== undefined && found.untilMs > nowMs() ? found : undefined
  }
  const remember = (url: string, call: RpcCall, length: Length, triedMs: number): void => {
    const key = keyOf(url, call)
    known.delete(key)
    known.set(key, { length, triedMs, untilMs: nowMs() + rememberedMs })
    const oldest = known.keys().next()
    if (known.size > receiptsMax && oldest.done !== true) known.delete(oldest.value)
  }
  return {
    lengthOf: (url, call) => find(url, call)?.length ?? 'usual',
    markLong(url, call) {
      if (isReceipt(call) && find(url, call) === undefined) remember(url, call, 'long', 0)
    },
    markTried(url, call, outcome) {
      if (!isReceipt(call)) return
      if (outcome === 'unread') {
        remember(url, call, 'unread', nowMs())
        onUnread?.(url, call.params[0])
      } else if (find(url, call) !== undefined) remember(url, call, 'long', nowMs())
    },
    triedMs: (url, call) => find(url, call)?.triedMs ?? 0,
  }
}

function isReceipt({ method }: RpcCall): boolean {
  return method === 'eth_getTransactionReceipt'
}

import type { MessageShape } from './message.ts'

/** Messages of an owner: how many a second for long, and how many at once after a pause. A long message counts as several. */
const perSecond = 50
const burst = 300
const bytesPerMessage = 16_384
const nodesPerMessage = 500
const ownersMax = 100_000

/** Counts the messages of each owner. Both functions return the seconds to wait if there were too many, and then count nothing. */
export interface MessageRates {
  /** Counts a message by its announced bytes, before it is read. */
  readonly announced: (owner: string, bytes: number) => number | undefined
  /** Counts what a message costs beyond that, before it is parsed. */
  readonly received: (owner: string, shape: MessageShape) => number | undefined
}

/**
 * The rate of each owner, in this process: organisations that share limits have one. Many messages, such as lists of tools, call nothing of the
 * service, so that none of its limits applies to them. A message that costs more than half of a burst is admitted when half is there, and the next ones wait for the rest.
 */
export function messageRates(now: () => number): MessageRates {
  const buckets = new Map<string, { tokens: number; at: number }>()
  const take = (owner: string, cost: number): number | undefined => {
    const known = buckets.get(owner) ?? { tokens: burst, at: now() }
    const refilled = known.tokens + ((now() - known.at) / 1_000) * perSecond
    const bucket = { tokens: Math.min(burst, refilled), at: now() }
    buckets.delete(owner)
    if (buckets.size >= ownersMax) buckets.delete(buckets.keys().next().value ?? '')
    buckets.set(owner, bucket)
    const price = Math.min(cost, burst / 2)
    if (bucket.tokens < price) return Math.ceil((price - bucket.tokens) / perSecond)
    bucket.tokens -= cost
    return undefined
  }
  return {
    announced: (owner, bytes) => take(owner, 1 + Math.floor(bytes / bytesPerMessage)),
    received: (owner, { messages, nodes }) => take(owner, messages - 1 + Math.floor(nodes / nodesPerMessage)),
  }
}

import type { MessageShape } from './message.ts'

/** Messages of an organisation: how many a second for long, and how many at once after a pause. A long message counts as several. */
const perSecond = 50
const burst = 300
const bytesPerMessage = 16_384
const nodesPerMessage = 500
const organisationsMax = 100_000

/** Counts the messages of each organisation. Both functions return the seconds to wait if there were too many, and then count nothing. */
export interface MessageRates {
  /** Counts a message by its announced bytes, before it is read. */
  readonly announced: (organisationId: string, bytes: number) => number | undefined
  /** Counts what a message costs beyond that, before it is parsed. */
  readonly received: (organisationId: string, shape: MessageShape) => number | undefined
}

/**
 * The rate of each organisation, in this process. Many messages, such as lists of tools, call nothing of the service, so that none of its limits applies
 * to them. A message that costs more than half of a burst is admitted when half is there, and the next ones wait for the rest.
 */
export function messageRates(now: () => number): MessageRates {
  const buckets = new Map<string, { tokens: number; at: number }>()
  const take = (organisationId: string, cost: number): number | undefined => {
    const known = buckets.get(organisationId) ?? { tokens: burst, at: now() }
    const refilled = known.tokens + ((now() - known.at) / 1_000) * perSecond
    const bucket = { tokens: Math.min(burst, refilled), at: now() }
    buckets.delete(organisationId)
    if (buckets.size >= organisationsMax) buckets.delete(buckets.keys().next().value ?? '')
    buckets.set(organisationId, bucket)
    const price = Math.min(cost, burst / 2)
    if (bucket.tokens < price) return Math.ceil((price - bucket.tokens) / perSecond)
    bucket.tokens -= cost
    return undefined
  }
  return {
    announced: (organisationId, bytes) => take(organisationId, 1 + Math.floor(bytes / bytesPerMessage)),
    received: (organisationId, { messages, nodes }) =>
      take(organisationId, messages - 1 + Math.floor(nodes / nodesPerMessage)),
  }
}

import type { Network } from '@purser/protocol'
import type { BlockRange } from '../../../chain/block-port.ts'

const spanFirst = 64
const spanMost = 5_000
/** Blocks of a range whose headers are all read: nodes limit the calls of a batch. */
const headersMost = 100

/** Answers at one span before more is tried again. */
const calmMost = 64

/** How many blocks are asked for at once: every node allows something else, and says so in words of its own, or not at all. */
export interface Pace {
  readonly span: number
  /** The last span that was answered, and the least that was not since. */
  readonly good: number
  readonly bad: number
  /** Answers since either changed. */
  readonly calm: number
}

const none = Number.POSITIVE_INFINITY
export const firstPace: Pace = { span: spanFirst, good: spanFirst, bad: none, calm: 0 }

/** After a failure, whatever it was: what was answered before, or else half. */
export function slower({ span, good }: Pace): Pace {
  const next = good < span ? good : Math.max(1, span >> 1)
  return { span: next, good: next, bad: span, calm: 0 }
}

/** After an answer: more, closing in on what failed; once it is near, it stays there for a while. */
export function faster({ span, bad, calm }: Pace): Pace {
  const isNear = bad - span <= Math.max(1, span >> 4)
  if (!isNear)
    return { span: Math.min(spanMost, bad === none ? span * 2 : span + ((bad - span) >> 1)), good: span, bad, calm: 0 }
  if (calm < calmMost) return { span, good: span, bad, calm: calm + 1 }
  return { span: Math.min(spanMost, span + Math.max(1, span >> 3)), good: span, bad: none, calm: 0 }
}

/** Blocks whose hashes are remembered: a reorganisation that reaches deeper is not followed to its root. */
export function windowOf({ blockTimeMs }: Pick<Network, 'blockTimeMs'>): bigint {
  const windowMs = 600_000
  return BigInt(Math.max(256, Math.ceil(windowMs / blockTimeMs)))
}

/** How far behind the head blocks are read for the second time, when a node that serves a block before its logs has them all. */
export function checkLagOf({ blockTimeMs }: Pick<Network, 'blockTimeMs'>): bigint {
  const lagMs = 20_000
  return BigInt(Math.max(5, Math.ceil(lagMs / blockTimeMs)))
}

/** How often a network's head is asked for: twice a block, but neither more than twice a second nor less than every 3 seconds. */
export function pollMsOf({ blockTimeMs }: Pick<Network, 'blockTimeMs'>): number {
  return Math.min(3_000, Math.max(500, blockTimeMs / 2))
}

/**
 * The blocks to be read next, after `done` and up to `to`. Where a reorganisation may still come every header is read; what is older is read in
 * longer ranges.
 */
export function nextRange(
  network: Network,
  place: { readonly done: bigint; readonly to: bigint; readonly head: bigint },
  { span }: Pace,
): Pick<BlockRange, 'from' | 'to' | 'headers'> | undefined {
  const from = place.done + 1n
  if (from > place.to) return undefined
  const old = place.head - windowOf(network)
  const isOld = from <= old
  const end = from + BigInt(isOld ? span : Math.min(span, headersMost)) - 1n
  const most = isOld && old < place.to ? old : place.to
  return { from, to: end < most ? end : most, headers: isOld ? 'ends' : 'all' }
}

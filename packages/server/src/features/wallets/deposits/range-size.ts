import type { Network } from '@purser/protocol'
import type { BlockRange } from '../../../chain/block-port.ts'

const spanFirst = 64
const spanMost = 5_000
/** Most blocks in a range whose headers are all read: nodes limit the calls of a batch. */
const headersMost = 100

/** Successful requests at one span before a larger span is tried. */
const calmMost = 64

/** How many blocks one request reads. Every node has another limit, and reports it in its own way or not at all. */
export interface Pace {
  readonly span: number
  /** The last span that succeeded, and the smallest that failed since. */
  readonly good: number
  readonly bad: number
  /** Successful requests since either changed. */
  readonly calm: number
}

const none = Number.POSITIVE_INFINITY
export const firstPace: Pace = { span: spanFirst, good: spanFirst, bad: none, calm: 0 }

/** After a failure of any kind: the last successful span, or else half. */
export function slower({ span, good }: Pace): Pace {
  const next = good < span ? good : Math.max(1, span >> 1)
  return { span: next, good: next, bad: span, calm: 0 }
}

/** After a success: a larger block range, approaching the one that failed; close to it, the range stays constant for a while. */
export function faster({ span, bad, calm }: Pace): Pace {
  const isNear = bad - span <= Math.max(1, span >> 4)
  if (!isNear)
    return { span: Math.min(spanMost, bad === none ? span * 2 : span + ((bad - span) >> 1)), good: span, bad, calm: 0 }
  if (calm < calmMost) return { span, good: span, bad, calm: calm + 1 }
  return { span: Math.min(spanMost, span + Math.max(1, span >> 3)), good: span, bad: none, calm: 0 }
}

/** Number of blocks whose hashes are remembered: a deeper reorganization is not followed to its fork. */
export function windowOf({ blockTimeMs }: Pick<Network, 'blockTimeMs'>): bigint {
  const windowMs = 600_000
  return BigInt(Math.max(256, Math.ceil(windowMs / blockTimeMs)))
}

/**
 * Distance behind the head at which blocks are read for the second time, when a node that serves a block before its logs has all of them.
 */
export function checkLagOf({ blockTimeMs }: Pick<Network, 'blockTimeMs'>): bigint {
  const lagMs = 20_000
  return BigInt(Math.max(5, Math.ceil(lagMs / blockTimeMs)))
}

/** Poll interval of a network's head: half the block time, but at least half a second and at most 3 seconds. */
export function pollMsOf({ blockTimeMs }: Pick<Network, 'blockTimeMs'>): number {
  return Math.min(3_000, Math.max(500, blockTimeMs / 2))
}

/**
 * The next range of blocks to read, after `done` and up to `to`. Where a reorganization is still possible every header is read; older
 * blocks are read in longer ranges.
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

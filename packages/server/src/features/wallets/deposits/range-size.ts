import type { Network } from '@purser/protocol'
import type { BlockRange } from '../../../chain/blocks/port.ts'

const blocksFirst = 64
const blocksMax = 5_000
/** Most blocks in a range whose headers are all read: nodes limit the calls of a batch. */
const headersMax = 100

/** Successful requests of one size before a larger one is tried. */
const successesMax = 64

/** The number of blocks that one request reads. Every node has another limit, and reports it in its own way or not at all. */
export interface RangeSize {
  readonly blocks: number
  /** The last size that succeeded, and the smallest that failed since. */
  readonly succeeded: number
  readonly failed: number
  /** Successful requests since either changed. */
  readonly successes: number
}

const none = Number.POSITIVE_INFINITY
export const firstSize: RangeSize = { blocks: blocksFirst, succeeded: blocksFirst, failed: none, successes: 0 }

/** After a failure of any kind: the last size that succeeded, or else half. */
export function afterFailure({ blocks, succeeded }: RangeSize): RangeSize {
  const next = succeeded < blocks ? succeeded : Math.max(1, blocks >> 1)
  return { blocks: next, succeeded: next, failed: blocks, successes: 0 }
}

/** After a success: a larger block range, approaching the one that failed; close to it, the range stays constant for a while. */
export function afterSuccess({ blocks, failed, successes }: RangeSize): RangeSize {
  const isNear = failed - blocks <= Math.max(1, blocks >> 4)
  if (!isNear)
    return {
      blocks: Math.min(blocksMax, failed === none ? blocks * 2 : blocks + ((failed - blocks) >> 1)),
      succeeded: blocks,
      failed,
      successes: 0,
    }
  if (successes < successesMax) return { blocks, succeeded: blocks, failed, successes: successes + 1 }
  return {
    blocks: Math.min(blocksMax, blocks + Math.max(1, blocks >> 3)),
    succeeded: blocks,
    failed: none,
    successes: 0,
  }
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
  position: { readonly done: bigint; readonly to: bigint; readonly head: bigint },
  { blocks }: RangeSize,
): Pick<BlockRange, 'from' | 'to' | 'headers'> | undefined {
  const from = position.done + 1n
  if (from > position.to) return undefined
  const old = position.head - windowOf(network)
  const isOld = from <= old
  const end = from + BigInt(isOld ? blocks : Math.min(blocks, headersMax)) - 1n
  const most = isOld && old < position.to ? old : position.to
  return { from, to: end < most ? end : most, headers: isOld ? 'ends' : 'all' }
}

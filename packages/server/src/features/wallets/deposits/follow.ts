import type { Network } from '@purser/protocol'
import type { BlockHeader, BlockReads, ConfirmedReads, IsWanted } from '../../../chain/block-port.ts'
import { fail } from '../../../chain/errors.ts'
import type { Deps } from '../../../platform/ctx.ts'
import { confirmUpTo, withdrawDenied } from './confirm.ts'
import { findCursor, type Lease, listScannedBlocks, type ScannedBlock } from './cursor-store.ts'
import { contradicts, rewind } from './fork.ts'
import { checkLagOf, faster, firstPace, nextRange, type Pace, slower, windowOf } from './pace.ts'
import { ConfirmedContradicted, LeadLost, storeScan } from './store-scan.ts'
import { findOldestPending } from './transaction-store.ts'
import type { Watched } from './watched.ts'

/** Dependencies of following a network; the lease proves the right to follow it. */
export interface Following {
  readonly deps: Deps
  readonly network: Network
  readonly reads: BlockReads & ConfirmedReads
  readonly watched: Watched
  readonly lease: Lease
  /** Aborted when following must end: the current step is the last. */
  readonly stopped: AbortSignal
}

interface PaceKeeper {
  now: Pace
}

interface Place {
  readonly scanned: bigint
  readonly checked: bigint
}

/**
 * Returns a function that follows the network to its head: reads new blocks, rewinds on a reorganization, and confirms final rows. Every
 * step commits by itself, and only the pace is kept in memory: it may be called again after any failure. Throws `LeadLost` if another
 * process leads.
 */
export function createFollower(following: Following): () => Promise<void> {
  const pace: PaceKeeper = { now: firstPace }
  return async () => {
    const { deps, network, reads, watched } = following
    const head = await reads.head()
    // After the head is read: an address that was committed before any of these blocks is then in the set.
    await watched.refresh()
    const place = await settle(following, head)
    const lag = lagGauge(deps, network)
    // Set before reading too, so that the metric shows a process that cannot read.
    lag.set(Number(head.number - place.scanned))
    const reached = await read(following, place, head, pace)
    lag.set(Number(head.number - reached))
    await confirm(following, reached)
  }
}

/** Confirms pending rows in blocks that were read and are deep enough. Nodes are queried only if rows are pending. */
async function confirm({ deps, network, reads, lease }: Following, reached: bigint): Promise<void> {
  const oldestPending = await findOldestPending(deps.db, network.name)
  if (oldestPending === undefined) return
  const final = await reads.finalBlock()
  if (final === undefined)
    deps.log.warn({ network: network.name }, 'too few nodes agree on a block at the confirmation depth; deposits wait')
  else if (final >= oldestPending)
    await confirmUpTo({ ...deps, reads }, lease, network, final < reached ? final : reached)
}

/** Where reading continues: on a network that was never read, a window before its head; after a reorganization, at the fork. */
async function settle(following: Following, head: BlockHeader): Promise<Place> {
  const { deps, network, reads, lease } = following
  const place = await placeOf(following)
  if (place === undefined) {
    const before = head.number - windowOf(network)
    const start = before < 0n ? -1n : before
    await storeScan(deps, lease, network, { headers: [], transfers: [], cursor: { scanned: start, checked: start } })
    return { scanned: start, checked: start }
  }
  if (head.number > place.scanned) return place
  const known = await listScannedBlocks(deps.db, network.name, { below: head.number + 1n, limit: 1 })
  // A node that is behind returns known blocks, or is too far behind to compare.
  if (known[0]?.number !== head.number || known[0].hash === head.hash) return place
  await rewind({ ...deps, reads }, lease, network)
  return (await placeOf(following)) ?? place
}

async function placeOf({ deps, lease }: Following): Promise<Place | undefined> {
  const cursor = await findCursor(deps.db, lease)
  if (cursor === undefined) throw new LeadLost()
  const { scanned, checked } = cursor
  return scanned === null || checked === null ? undefined : { scanned, checked }
}

/** Reads up to the head, then reads older blocks for the second time. Returns the last block read. */
async function read(following: Following, from: Place, head: BlockHeader, pace: PaceKeeper): Promise<bigint> {
  const { network, stopped } = following
  let place: Place = from
  while (!stopped.aborted) {
    const range = rangeAfter(network, place, head, pace.now)
    if (range === undefined) break
    try {
      const reached = await readRange(following, place, head, range)
      pace.now = faster(pace.now)
      // The chain was reorganized: the next run begins with its new head.
      if (reached === 'rewound') return ((await placeOf(following)) ?? place).scanned
      place = reached
    } catch (error) {
      if (!(error instanceof LeadLost)) pace.now = slower(pace.now)
      throw error
    }
  }
  return place.scanned
}

interface Range {
  readonly from: bigint
  readonly to: bigint
  readonly headers: 'all' | 'ends'
  readonly isSecond: boolean
}

function rangeAfter(network: Network, place: Place, head: BlockHeader, pace: Pace): Range | undefined {
  const ahead = nextRange(network, { done: place.scanned, to: head.number, head: head.number }, pace)
  if (ahead !== undefined) return { ...ahead, isSecond: false }
  const lagging = head.number - checkLagOf(network)
  const to = lagging < place.scanned ? lagging : place.scanned
  const again = nextRange(network, { done: place.checked, to, head: head.number }, pace)
  return again && { ...again, isSecond: true }
}

async function readRange(
  following: Following,
  place: Place,
  head: BlockHeader,
  range: Range,
): Promise<Place | 'rewound'> {
  const { deps, network, reads, watched, lease } = following
  const tokens = network.tokens.map(({ address }) => address)
  const hash = range.from === range.to && range.to === head.number ? head.hash : undefined
  const isWanted: IsWanted = (from, to) => watched.hasTopic(to) || watched.hasTopic(from)
  const found = await reads.transfers({ ...range, tokens, hash }, isWanted)
  if (contradicts(found.headers, await knownAround(following, range))) {
    await rewind({ ...deps, reads }, lease, network)
    return 'rewound'
  }
  const cursor = range.isSecond ? { ...place, checked: range.to } : { ...place, scanned: range.to }
  const fresh = await storeScan(deps, lease, network, { ...found, cursor }).catch((error: unknown) =>
    settleContradiction(following, error),
  )
  if (range.isSecond && fresh > 0)
    deps.log.warn({ network: network.name, fresh }, 'a node had omitted logs of a block; the second reading found them')
  return cursor
}

/** A majority decides about confirmed rows that a node contradicts; the range is then read again, at another node if this one lied. */
async function settleContradiction({ deps, reads, network, lease }: Following, error: unknown): Promise<never> {
  if (!(error instanceof ConfirmedContradicted)) throw error
  const withdrawn = await withdrawDenied({ ...deps, reads }, lease, error.rows)
  const details = { network: network.name, contradicted: error.rows.length, withdrawn }
  deps.log.error(details, 'a node contradicts confirmed deposits; a majority decided')
  throw fail('chain-unavailable', {}, error)
}

/** The remembered blocks of a range and the one before it. */
async function knownAround({ deps, network }: Following, { from, to }: Range): Promise<ScannedBlock[]> {
  const limit = Number(to - from) + 2
  const known = await listScannedBlocks(deps.db, network.name, { below: to + 1n, limit })
  return known.filter(({ number }) => number >= from - 1n)
}

function lagGauge({ metrics }: Deps, { name }: Network) {
  return metrics.gauge(
    `purser_deposit_lag_blocks_${name.replaceAll('-', '_')}`,
    `Blocks of ${name} that were not read for deposits yet.`,
  )
}

import type { Network } from '@purser/protocol'
import type {
  BlockReads,
  ConfirmedReads,
  IsWanted,
  PlacedBlock,
  ScannedRange,
  TokenTransfer,
} from '../../../chain/blocks/port.ts'
import { fail } from '../../../chain/errors.ts'
import type { ScreeningPort } from '../../../partners/screening/port.ts'
import type { Deps as PlatformDeps } from '../../../platform/ctx.ts'
import { isProblem } from '../../../platform/errors.ts'
import type { DueCursors } from '../../plans/index.ts'
import { isVirtual } from './booking.ts'
import { confirmFinal, firstTurn, withdrawDenied, withdrawInvented } from './confirm.ts'
import { findCursor, listScannedBlocks, type ScannedBlock, type WatcherLease } from './cursor-store.ts'
import { contradictedIn, contradicts, rewind } from './fork.ts'
import { type BalanceReads, recordOpenings } from './opening.ts'
import { afterFailure, afterSuccess, checkLagOf, firstSize, nextRange, type RangeSize, windowOf } from './range-size.ts'
import {
  type Believed,
  headersOf,
  readAtSeveral,
  refuseReplaced,
  unionOf,
  withoutDenied,
  withoutInvented,
} from './several-nodes.ts'
import { LeadLost, RowsContradicted, type Scan, storeScan } from './store-scan.ts'
import type { TransactionRow } from './transaction-store.ts'
import type { Watched } from './watched.ts'

type FollowDeps = PlatformDeps & ScreeningPort

/** Dependencies of following a network; the lease proves the right to follow it. */
export interface Following {
  readonly deps: FollowDeps
  readonly network: Network
  readonly reads: BlockReads & ConfirmedReads
  readonly balances: BalanceReads
  readonly watched: Watched
  readonly lease: WatcherLease
  /** Aborted when following must end: the current step is the last. */
  readonly stopped: AbortSignal
  /** The clock of durations; default `performance.now`, which nobody sets. */
  readonly nowMs?: () => number
}

interface SizeState {
  now: RangeSize
}

/** The state of the second reading. It runs independently, so that a node that fails in it delays nothing else. */
interface Checking extends SizeState {
  failures: number
  /** Number of passes that still skip the second reading after failures. */
  pause: number
}

/** Most passes that skip the second reading after a failure. */
const skippedPassesMax = 16

interface Disputed {
  /** The first node contradicted blocks, or showed transfers that no majority confirms, up to here: others are read, as it would show the same again. */
  to: bigint
  /** The nodes were undecided about transfers of new blocks up to here: the second reading lets them vote again. */
  undecidedTo: bigint
  /** The organisation behind which the next of these votes begins. */
  readonly voters: DueCursors
}

interface ScanPosition {
  readonly scanned: bigint
  readonly checked: bigint
}

/**
 * Returns a function that follows the network to its head: reads new blocks, rewinds on a reorganization, confirms final rows, and reads older
 * blocks for the second time. On a network that was never read it begins once a majority names a block. Every step commits by itself, and only the size of
 * ranges and whose turn it is are kept in memory: it may be called again after any failure. Throws `LeadLost` if another process leads.
 */
export function createFollower(following: Following): () => Promise<void> {
  const size: SizeState = { now: firstSize }
  const checking: Checking = { now: firstSize, failures: 0, pause: 0 }
  const disputed: Disputed = { to: -1n, undecidedTo: -1n, voters: new Map() }
  let isOpened = false
  const turns = firstTurn()
  /** Hash of the head of the last pass. */
  let lastHead: string | undefined
  return async () => {
    const { deps, network, reads, lease, nowMs = () => performance.now() } = following
    const agreed = await reads.newestBlock()
    if (agreed === undefined && (await positionOf(following)) === undefined)
      throw fail('chain-unavailable', {}, new Error('too few nodes agree on the block at which reading begins'))
    // While no majority agrees on a block, one range of one node's blocks is read in each pass; nothing in them is confirmed.
    const head = agreed ?? (await reads.head())
    // After the head is read: on a new network reading begins below the blocks of these balances.
    if (!isOpened) await recordOpenings(following, startOf(network, head))
    isOpened = true
    const position = await findStart(following, { head, lastHead })
    lastHead = head.hash
    const lag = lagGauge(deps, network)
    // Set before reading too, so that the metric shows a process that cannot read.
    lag.set(Number(head.number - position.scanned))
    const rangesMax = agreed === undefined ? 1 : Number.POSITIVE_INFINITY
    const read = await readNew(following, { position, head, size, disputed, rangesMax }).then(
      (reached) => ({ reached, failure: undefined }),
      async (error: unknown) => ({ reached: await positionAfter(following, error), failure: error }),
    )
    lag.set(Number(head.number - read.reached.scanned))
    // Also when new blocks cannot be read: one node may refuse each of them.
    await confirmFinal({ ...deps, reads }, lease, network, { upTo: read.reached.scanned, turns, nowMs })
    await check(following, { position: read.reached, head, checking, disputed })
    if (read.failure !== undefined) throw read.failure
  }
}

/** The stored cursor after reading failed. */
async function positionAfter(following: Following, error: unknown): Promise<ScanPosition> {
  const position = error instanceof LeadLost ? undefined : await positionOf(following)
  if (position === undefined) throw error
  return position
}

/**
 * Returns the position at which reading continues: on a network that was never read, a window before its head; after a reorganization, at the fork.
 */
async function findStart(
  following: Following,
  { head, lastHead }: { readonly head: PlacedBlock; readonly lastHead: string | undefined },
): Promise<ScanPosition> {
  const { deps, network, reads, lease } = following
  const position = await positionOf(following)
  if (position === undefined) {
    const start = startOf(network, head)
    await storeScan(deps, lease, network, { headers: [], transfers: [], cursor: { scanned: start, checked: start } })
    return { scanned: start, checked: start }
  }
  if (head.number > position.scanned || lastHead === head.hash) return position
  const known = await listScannedBlocks(deps.db, network.name, { below: head.number + 1n, limit: 1 })
  // A node that is behind returns known blocks, or is too far behind to compare.
  if (known[0]?.number !== head.number || known[0].hash === head.hash) return position
  await rewind({ ...deps, reads }, lease, network, head.number)
  return (await positionOf(following)) ?? position
}

/** The block after which a network that was never read is read: a window before its head. */
function startOf(network: Network, head: PlacedBlock): bigint {
  const before = head.number - windowOf(network)
  return before < 0n ? -1n : before
}

async function positionOf({ deps, lease }: Following): Promise<ScanPosition | undefined> {
  const cursor = await findCursor(deps.db, lease)
  if (cursor === undefined) throw new LeadLost()
  const { scanned, checked } = cursor
  return scanned === null || checked === null ? undefined : { scanned, checked }
}

interface Reading {
  readonly position: ScanPosition
  readonly head: PlacedBlock
  readonly size: SizeState
  readonly disputed: Disputed
}

/** Reads at most `rangesMax` ranges of new blocks, up to the head. Returns the new cursor. */
function readNew(following: Following, reading: Reading & { readonly rangesMax: number }): Promise<ScanPosition> {
  const { network } = following
  const { head, size } = reading
  let left = reading.rangesMax
  return readAll(following, reading, ({ scanned }) => {
    left -= 1
    if (left < 0) return undefined
    const range = nextRange(network, { done: scanned, to: head.number, head: head.number }, size.now)
    return range && { ...range, isSecond: false }
  })
}

/** Reads older blocks a second time, at several nodes if there are several. A range that fails is read again in a later pass. */
async function check(
  following: Following,
  { position, head, checking, disputed }: Omit<Reading, 'size'> & { readonly checking: Checking },
): Promise<void> {
  const { deps, network } = following
  checking.pause -= 1
  if (checking.pause >= 0) return
  const lagging = head.number - checkLagOf(network)
  const to = lagging < position.scanned ? lagging : position.scanned
  try {
    await readAll(following, { position, head, size: checking, disputed }, ({ checked }) => {
      const range = nextRange(network, { done: checked, to, head: head.number }, checking.now)
      return range && { ...range, isSecond: true }
    })
    checking.failures = 0
  } catch (error) {
    if (error instanceof LeadLost) throw error
    checking.pause = Math.min(skippedPassesMax, 2 ** Math.min(checking.failures, 8) - 1)
    checking.failures += 1
    const details = {
      err: error,
      network: network.name,
      failures: checking.failures,
      unchecked: Number(to - position.checked),
    }
    deps.log.warn(details, 'blocks could not be read for the second time; retrying')
  }
}

async function readAll(
  following: Following,
  { position: from, head, size, disputed }: Reading,
  rangeAfter: (position: ScanPosition) => Range | undefined,
): Promise<ScanPosition> {
  let position = from
  while (!following.stopped.aborted) {
    const range = rangeAfter(position)
    if (range === undefined) break
    try {
      const reached = await readRange(following, { position, head, range, disputed })
      size.now = afterSuccess(size.now)
      // The chain was reorganized: the next run begins with its new head.
      if (reached === 'rewound') return (await positionOf(following)) ?? position
      position = reached
    } catch (error) {
      if (!(error instanceof LeadLost)) size.now = afterFailure(size.now)
      throw error
    }
  }
  return position
}

interface Range {
  readonly from: bigint
  readonly to: bigint
  readonly headers: 'all' | 'ends'
  readonly isSecond: boolean
}

async function readRange(
  following: Following,
  { position, head, range, disputed }: Omit<Reading, 'size'> & { readonly range: Range },
): Promise<ScanPosition | 'rewound'> {
  const { deps, network, reads, lease, watched } = following
  // After the head is read: an address that was committed before any of these blocks is then in the set.
  await watched.refresh()
  const known = await knownAround(following, range)
  const believed = await believedReadings(following, { head, range, known, disputed })
  const shown = believed.readings.flatMap(({ headers }) => headers)
  const contradicted = contradictedIn(shown, known)
  if (contradicted !== undefined) {
    await rewind({ ...deps, reads }, lease, network, contradicted)
    if (range.isSecond) disputed.to = position.scanned
    return 'rewound'
  }
  const cursor = range.isSecond ? { ...position, checked: range.to } : { ...position, scanned: range.to }
  const scan = {
    headers: headersOf(believed.readings),
    transfers: await unionOf(following, believed.readings),
    cursor,
    isAdding: range.isSecond,
  }
  // Before the range is stored: where either fails, both are repeated.
  if (range.isSecond && range.from <= disputed.undecidedTo) await voteAgain(following, range, disputed.voters)
  const fresh = await store(following, scan)
  if (believed.undecided.length > 0 && !range.isSecond) disputed.undecidedTo = range.to
  if (range.isSecond && fresh > 0)
    deps.log.warn({ network: network.name, fresh }, 'a node had omitted logs of a block; the second reading found them')
  return cursor
}

interface ReadingOf {
  readonly head: PlacedBlock
  readonly range: Range
  readonly known: readonly ScannedBlock[]
  readonly isDisputed: boolean
}

/**
 * The readings of a range without transfers that a node invented. Where a majority does not confirm each transfer of one node, the range is read again at
 * several nodes. If too few can be read, its transfers count unless a majority denies one or has another block.
 */
async function believedReadings(
  following: Following,
  { disputed, ...reading }: Omit<ReadingOf, 'isDisputed'> & { readonly disputed: Disputed },
): Promise<Believed> {
  const { range } = reading
  const isDisputed = range.from <= disputed.to
  const first = await believedOf(following, { ...reading, isDisputed })
  const { invented, undecided } = first
  const isDoubtful = invented > 0 || (first.readings.length === 1 && undecided.length > 0)
  if (range.isSecond || isDisputed || !isDoubtful) return first
  disputed.to = range.to
  return believedOf(following, { ...reading, isDisputed: true }).catch(async (error: unknown) => {
    if (invented > 0 || !isProblem(error, 'chain-unavailable')) throw error
    await refuseReplaced(following, undecided)
    return first
  })
}

/** Reads and votes. There is no vote on blocks that contradict remembered ones, or of which not every header is read: their rows wait until they are final. */
async function believedOf(following: Following, reading: ReadingOf): Promise<Believed> {
  const readings = await readingsOf(following, reading)
  const headers = readings.flatMap((one) => one.headers)
  if (reading.range.headers === 'ends' || contradicts(headers, reading.known))
    return { readings, invented: 0, undecided: [] }
  const { deps, network, watched } = following
  const believed = await withoutInvented(following, readings, wantedBy(watched))
  const { invented } = believed
  if (invented > 0) deps.log.error({ network: network.name, invented }, 'a node invents transfers; they are not booked')
  return believed
}

function wantedBy(watched: Watched): IsWanted {
  return (from, to) => watched.hasTopic(to) || watched.hasTopic(from)
}

/** Withdraws rows of the range about which the nodes were undecided when they were booked, and which a majority denies now. */
async function voteAgain(following: Following, range: Range, cursors: DueCursors): Promise<void> {
  const { deps, reads, network, lease, nowMs = () => performance.now() } = following
  const withdrawn = await withdrawInvented({ ...deps, reads }, lease, network, { ...range, cursors, nowMs })
  if (withdrawn > 0)
    deps.log.error({ network: network.name, withdrawn }, 'a node invented transfers; they are withdrawn')
}

/** One node's reading of new blocks; those of several for the second reading, and where the one contradicts what was read before. */
async function readingsOf(
  { network, reads, watched }: Following,
  { head, range, known, isDisputed }: ReadingOf,
): Promise<readonly ScannedRange[]> {
  const tokens = network.tokens.map(({ address }) => address)
  const whole = { ...range, tokens, accounts: () => watched.topics(), isForwarding: isVirtual }
  const isWanted = wantedBy(watched)
  if (!range.isSecond && !isDisputed) {
    const hash = range.to === head.number ? head.hash : undefined
    const one = await reads.transfers({ ...whole, hash }, isWanted)
    if (!contradicts(one.headers, known)) return [one]
  }
  return readAtSeveral({ reads }, whole, { isWanted, known })
}

/**
 * Stores a range and returns the number of new rows. Where it contradicts rows, a majority decides about the range's transfers; where it still
 * contradicts confirmed rows, about those, and the range is read again.
 */
async function store(following: Following, scan: Scan): Promise<number> {
  const { deps, network, lease } = following
  const contradicted = (error: unknown): readonly TransactionRow[] => {
    if (error instanceof RowsContradicted) return error.rows
    throw error
  }
  const first = await storeScan(deps, lease, network, scan).catch(contradicted)
  if (typeof first === 'number') return first
  if (scan.isAdding !== true) return resolveContradiction(following, first)
  const doubtful = new Set<string>(first.map(({ txHash }) => txHash))
  const isDoubtful = ({ txHash }: TokenTransfer): boolean => doubtful.has(txHash)
  const decided = { ...scan, transfers: await withoutDenied(following, scan.transfers, isDoubtful), isAdding: false }
  const second = await storeScan(deps, lease, network, decided).catch(contradicted)
  return typeof second === 'number' ? second : resolveContradiction(following, second)
}

/** A majority decides about confirmed rows that a node contradicts; the range is then read again, at another node if this one lied. */
async function resolveContradiction(
  { deps, reads, network, lease }: Following,
  rows: readonly TransactionRow[],
): Promise<never> {
  const withdrawn = await withdrawDenied({ ...deps, reads }, lease, rows)
  const details = { network: network.name, contradicted: rows.length, withdrawn }
  deps.log.error(details, 'a node contradicts confirmed deposits; checked by a majority')
  throw fail('chain-unavailable', {}, new Error('a node contradicts confirmed deposits'))
}

/** The remembered blocks of a range and the one before it. */
async function knownAround({ deps, network }: Following, { from, to }: Range): Promise<ScannedBlock[]> {
  const limit = Number(to - from) + 2
  const known = await listScannedBlocks(deps.db, network.name, { below: to + 1n, limit })
  return known.filter(({ number }) => number >= from - 1n)
}

function lagGauge({ metrics }: FollowDeps, { name }: Network) {
  return metrics
    .gauge('purser_deposit_lag_blocks', 'Blocks that were not read for deposits yet.', ['network'])
    .labels({ network: name })
}

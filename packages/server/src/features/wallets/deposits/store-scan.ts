import type { Address, Network } from '@purser/protocol'
import type { BlockHeader, TokenTransfer } from '../../../chain/blocks/port.ts'
import { instantOf } from '../../../platform/clock.ts'
import type { Queryable, Tx } from '../../../platform/db/db.ts'
import { newId } from '../../../platform/ids.ts'
import type { Deps } from '../ports.ts'
import { isOnHold } from '../screening/next.ts'
import { followTaint } from '../screening/taint.ts'
import type { Change } from '../screening/taint-store.ts'
import { type Booking, bookingsByOrganisation, bookingsOf, clockFaultMsMax, type Ledger } from './booking.ts'
import { type Cursor, lockCursor, moveCursor, rememberBlocks, type WatcherLease } from './cursor-store.ts'
import { piecesOf } from './pieces.ts'
import { windowOf } from './range-size.ts'
import { reconcile } from './reconcile.ts'
import {
  type BookedAml,
  insertBookings,
  lockRowsElsewhere,
  lockRowsOf,
  markMoved,
  markWithdrawn,
  type TransactionRow,
} from './transaction-store.ts'
import { listWatchesAt } from './watch-store.ts'

/** Most bookings that one transaction of the watcher stores. */
const pieceMax = 1_000

export type ScanDeps = Pick<Deps, 'db' | 'clock' | 'random' | 'log' | 'screening'>

/** Another process leads the network: nothing was written, and the work must stop. */
export class LeadLost extends Error {
  constructor() {
    super('another process follows this network')
    this.name = 'LeadLost'
  }
}

/** A node contradicts rows that may not change on its word: its transaction wrote nothing. A majority must decide. */
export class RowsContradicted extends Error {
  readonly rows: readonly TransactionRow[]

  constructor(rows: readonly TransactionRow[]) {
    super('a node contradicts deposits')
    this.name = 'RowsContradicted'
    this.rows = rows
  }
}

function refuseConfirmed(rows: readonly TransactionRow[]): void {
  const confirmed = rows.filter(({ status }) => status === 'confirmed')
  if (confirmed.length > 0) throw new RowsContradicted(confirmed)
}

/** Data from a range of blocks, and the cursor after it. */
export interface Scan {
  readonly headers: readonly BlockHeader[]
  readonly transfers: readonly TokenTransfer[]
  readonly cursor: { readonly scanned: bigint; readonly checked: bigint }
  /** Adds rows, and changes none. */
  readonly isAdding?: boolean
}

/** Locks the cursor and returns it. Throws `LeadLost` if another process leads. */
export async function requireCursor(tx: Tx, lease: WatcherLease): Promise<Cursor> {
  const cursor = await lockCursor(tx, lease)
  if (cursor === undefined) throw new LeadLost()
  return cursor
}

/**
 * Stores the transfers of a range of blocks and moves the cursor, in one transaction, or in several if it has more than `pieceMax` bookings. The cursor moves
 * with the last one. After a crash the range is read again, and what is stored of it does not change. Returns the number of new rows.
 * Throws `RowsContradicted` if it would change a confirmed row or, while adding, any: the pieces before that are stored.
 */
export async function storeScan(deps: ScanDeps, lease: WatcherLease, network: Network, scan: Scan): Promise<number> {
  const { isAdding } = scan
  const underLease = <T>(work: (tx: Tx) => Promise<T>): Promise<T> =>
    deps.db.tx(
      async (tx) => {
        await requireCursor(tx, lease)
        return work(tx)
      },
      { readsByKeys: true },
    )
  /** Stores a piece, and moves the cursor if no piece follows it. */
  const storePiece = async (
    tx: Tx,
    piece: readonly Booking[],
    next: readonly Booking[] | undefined,
  ): Promise<number> => {
    const inserted = await storeBookings(deps, tx, network, { bookings: piece, isAdding })
    if (next !== undefined) return inserted
    await rememberBlocks(tx, network.name, scan.headers, scan.cursor.scanned - windowOf(network))
    await moveCursor(tx, network.name, scan.cursor)
    return inserted
  }
  const first = await underLease(async (tx) => {
    const elsewhere = await lockRowsElsewhere(tx, network.name, scan.headers)
    refuseConfirmed(elsewhere)
    await withdraw(deps, tx, elsewhere)
    const ledger = await ledgerOf(tx, network, { ...scan, countsEarlier: false })
    const pieces = piecesOf(ledger === undefined ? [] : bookingsByOrganisation(ledger), pieceMax)
    const bookings = pieces.next().value ?? []
    const next = pieces.next().value
    return { inserted: await storePiece(tx, bookings, next), pieces, next }
  })
  let { inserted, next } = first
  while (next !== undefined) {
    const bookings = next
    const following = first.pieces.next().value
    inserted += await underLease((tx) => storePiece(tx, bookings, following))
    next = following
  }
  return inserted
}

export interface Finding {
  readonly headers: readonly Pick<BlockHeader, 'number' | 'timestampSeconds'>[]
  readonly transfers: readonly TokenTransfer[]
  readonly countsEarlier: boolean
  readonly bookedWallets?: ReadonlySet<string>
  /** Books for this organisation alone. */
  readonly organisationId?: string
}

/** The bookings of a finding, whether or not they are stored. */
export async function listBookings(db: Queryable, network: Network, finding: Finding): Promise<readonly Booking[]> {
  const ledger = await ledgerOf(db, network, finding)
  return ledger === undefined ? [] : bookingsOf(ledger)
}

async function ledgerOf(db: Queryable, network: Network, finding: Finding): Promise<Ledger | undefined> {
  if (finding.transfers.length === 0) return undefined
  const addresses = [...new Set(finding.transfers.flatMap(({ from, to }): Address[] => [from, to]))]
  const oldest = Math.min(...finding.headers.map(({ timestampSeconds }) => Number(timestampSeconds)))
  const watches = await listWatchesAt(db, network.isTestnet ? 'test' : 'live', {
    addresses,
    endedAfter: instantOf(oldest * 1_000 - clockFaultMsMax),
    organisationId: finding.organisationId,
  })
  const times = new Map(finding.headers.map(({ number, timestampSeconds }) => [number, timestampSeconds]))
  const timeOf = (number: bigint): bigint => {
    const time = times.get(number)
    if (time === undefined) throw new Error(`the header of block ${number} was not read`)
    return time
  }
  return { ...finding, network, watches, timeOf }
}

interface Piece {
  readonly bookings: readonly Booking[]
  readonly isAdding?: boolean | undefined
}

/**
 * Stores bookings, and traces flagged money again. All sides that an organisation has of a transfer must be in the same piece. Returns the number of new rows. Idempotent.
 * Throws as `storeScan` does.
 */
export async function storeBookings(deps: ScanDeps, tx: Tx, network: Network, piece: Piece): Promise<number> {
  const { bookings, isAdding = false } = piece
  if (bookings.length === 0) return 0
  const txHashes = [...new Set(bookings.map(({ txHash }) => txHash))]
  const organisationIds = [...new Set(bookings.map(({ tenant }) => tenant.organisationId))]
  const rows = await lockRowsOf(tx, network.name, txHashes, organisationIds)
  const { inserted, moved, replaced } = reconcile(bookings, rows)
  if (inserted.length + moved.length + replaced.length === 0) return 0
  refuseConfirmed([...replaced, ...moved.map(({ row }) => row)])
  const changed = [...replaced, ...moved.flatMap(({ row }) => (row.status === 'withdrawn' ? [] : [row]))]
  if (isAdding && changed.length > 0) throw new RowsContradicted(changed)
  await markAllWithdrawn(deps, tx, replaced)
  // Withdrawn first, since two rows may swap positions.
  await markWithdrawn(
    tx,
    moved.map(({ row }) => row.id),
    deps.clock.now(),
  )
  for (const { row, booking } of moved) await markMoved(tx, row.id, booking)
  // In chain order, which ids from the same millisecond do not have by themselves.
  const ids = inserted.map(() => newId('wtx', deps)).sort()
  const inOrder = [...inserted].sort(
    (left, right) => Number(left.blockNumber - right.blockNumber) || left.logIndex - right.logIndex,
  )
  const fresh = inOrder.flatMap((booking, index) => {
    const id = ids[index]
    return id === undefined ? [] : [{ id, booking, aml: amlOf(deps, booking) }]
  })
  await insertBookings(tx, network.name, fresh, deps.clock.now())
  // Includes the other side of new rows, which may have been booked before: its taint moves too.
  const affected = new Set([...inserted, ...moved.map(({ booking }) => booking)].map(({ txHash }) => txHash))
  const booked = bookings.filter(({ txHash }) => affected.has(txHash))
  const left = [...replaced, ...moved.map(({ row }) => row)]
  await followTaint(tx, [...booked.map((booking) => changeOf(network.name, booking)), ...left.map(changeAt)])
  return inserted.length
}

function changeOf(network: string, { tenant, walletId, token, blockNumber }: Booking): Change {
  return { asset: { tenant, walletId, network, token: token.address }, block: blockNumber }
}

function changeAt({ walletId, network, token, blockNumber, organisationId, environment }: TransactionRow): Change {
  return { asset: { tenant: { organisationId, environment }, walletId, network, token }, block: blockNumber }
}

/**
 * Screening status of a sender at booking time, from memory: a listed sender's money is frozen in the transaction that books it. Money
 * between wallets of one organisation was screened when it came in.
 */
function amlOf({ screening }: ScanDeps, { direction, kind, from, tenant }: Booking): BookedAml {
  if (direction === 'out') return { status: 'pending', isOnHold: false, isScreened: true }
  if (kind === 'internal') return { status: 'clear', isOnHold: false, isScreened: false }
  const screened = screening.screenNow(from, tenant.environment)
  return { status: screened.result, isOnHold: isOnHold(screened), isScreened: true }
}

/** Withdraws rows, and traces flagged money again. */
export async function withdraw(deps: ScanDeps, tx: Tx, rows: readonly TransactionRow[]): Promise<void> {
  await markAllWithdrawn(deps, tx, rows)
  await followTaint(tx, rows.map(changeAt))
}

/** A withdrawn row that was reported as confirmed is an incident: its event is not revoked. */
async function markAllWithdrawn(deps: ScanDeps, tx: Tx, rows: readonly TransactionRow[]): Promise<void> {
  await markWithdrawn(
    tx,
    rows.map((row) => row.id),
    deps.clock.now(),
  )
  for (const { id, txHash, network, eventId } of rows)
    if (eventId !== null)
      deps.log.error({ id, txHash, network }, 'a deposit that was reported as confirmed is no longer on its chain')
}

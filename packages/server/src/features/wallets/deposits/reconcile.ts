import type { Booking } from './booking.ts'
import type { KnownRow } from './transaction-store.ts'

/** What storing these bookings comes to. */
export interface Changes {
  readonly inserted: readonly Booking[]
  /** Rows that stand at another place now: those that were withdrawn live again. */
  readonly moved: readonly { readonly row: KnownRow; readonly booking: Booking }[]
  /** Rows whose log now says something else: they are withdrawn, and what it says is booked anew. */
  readonly displaced: readonly KnownRow[]
}

/**
 * Compares what the chain says now of some transactions with every row of theirs. A transaction that comes into another block keeps its rows,
 * also when its logs have other numbers there: among equal transfers of one transaction the order decides, and it does not matter which is
 * which.
 */
export function reconcile(bookings: readonly Booking[], rows: readonly KnownRow[]): Changes {
  const free = new Set(rows)
  const inserted: Booking[] = []
  const moved: { row: KnownRow; booking: Booking }[] = []
  const displaced: KnownRow[] = []
  const open: Booking[] = []
  for (const booking of bookings) {
    const row = rows.find((known) => free.has(known) && known.status !== 'withdrawn' && isAt(known, booking))
    if (row === undefined || !saysTheSame(row, booking)) {
      if (row !== undefined) displaced.push(row)
      if (row !== undefined) free.delete(row)
      open.push(booking)
      continue
    }
    free.delete(row)
    if (row.blockHash !== booking.blockHash) moved.push({ row, booking })
  }
  const withdrawn = [...free]
    .filter(({ status }) => status === 'withdrawn')
    .sort((left, right) => left.logIndex - right.logIndex)
  for (const booking of [...open].sort((left, right) => left.logIndex - right.logIndex)) {
    const row = withdrawn.find((known) => free.has(known) && saysTheSame(known, booking))
    if (row === undefined) inserted.push(booking)
    else moved.push({ row, booking })
    if (row !== undefined) free.delete(row)
  }
  return { inserted, moved, displaced }
}

function isAt(row: KnownRow, booking: Booking): boolean {
  return (
    row.txHash === booking.txHash &&
    row.logIndex === booking.logIndex &&
    row.walletId === booking.walletId &&
    row.direction === booking.direction
  )
}

/** The same movement for the same wallet, wherever its log stands. */
function saysTheSame(row: KnownRow, booking: Booking): boolean {
  return (
    row.txHash === booking.txHash &&
    row.walletId === booking.walletId &&
    row.direction === booking.direction &&
    row.token === booking.token.address &&
    row.from === booking.from &&
    row.to === booking.to &&
    row.rawAmount === booking.rawAmount
  )
}

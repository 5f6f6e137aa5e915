import type { Booking } from './booking.ts'
import type { KnownRow } from './transaction-store.ts'

/** The changes that storing these bookings requires. */
export interface Changes {
  readonly inserted: readonly Booking[]
  /** Rows that are now at another position: withdrawn ones become valid again. */
  readonly moved: readonly { readonly row: KnownRow; readonly booking: Booking }[]
  /** Rows whose log has changed: they are withdrawn, and the new content is booked. */
  readonly replaced: readonly KnownRow[]
}

/**
 * Compares the chain's current logs of some transactions with all of their rows. A transaction that moves to another block keeps its rows,
 * even if its logs have other indices there: equal transfers of one transaction are matched in order, since they are interchangeable. A log that a wallet
 * of the customer's has a row for is not booked for another one, which the address was registered for since.
 */
export function reconcile(bookings: readonly Booking[], rows: readonly KnownRow[]): Changes {
  const free = new Set(rows)
  const inserted: Booking[] = []
  const moved: { row: KnownRow; booking: Booking }[] = []
  const replaced: KnownRow[] = []
  const open: Booking[] = []
  const rowAt = new Map(rows.flatMap((row) => (row.status === 'withdrawn' ? [] : [[positionOf(row), row] as const])))
  for (const booking of bookings) {
    const known = rowAt.get(positionOf(booking))
    const row = known !== undefined && free.has(known) ? known : undefined
    if (row === undefined || !isSameMovement(row, booking)) {
      if (row !== undefined) replaced.push(row)
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
  const withdrawnOf = Map.groupBy(withdrawn.toReversed(), movementOf)
  const elsewhere = new Set(rows.filter(reportsForCustomer).map(sharedOf))
  for (const booking of [...open].sort((left, right) => left.logIndex - right.logIndex)) {
    const row = withdrawnOf.get(movementOf({ ...booking, token: booking.token.address }))?.pop()
    if (row !== undefined) moved.push({ row, booking })
    else if (
      !isByo(booking) ||
      !elsewhere.has(sharedOf({ ...booking, ...booking.tenant, token: booking.token.address }))
    )
      inserted.push(booking)
  }
  return { inserted, moved, replaced }
}

function positionOf({
  txHash,
  logIndex,
  walletId,
  direction,
}: Pick<Side, 'txHash' | 'logIndex' | 'walletId' | 'direction'>): string {
  return [txHash, logIndex, walletId, direction].join(' ')
}

/** Whether a row shows its movement to the customer: its address may have been registered again, for another wallet, since it was booked. */
function reportsForCustomer(row: KnownRow): boolean {
  return isByo(row) && row.status !== 'withdrawn' && row.kind !== 'unsupported'
}

function isByo({ walletId }: { readonly walletId: string }): boolean {
  return walletId.startsWith('byw_')
}

/** A key of a log and of the organisation whose customer's wallets book it, whichever wallet that is. */
function sharedOf({
  organisationId,
  environment,
  txHash,
  logIndex,
  direction,
  token,
  from,
  to,
  rawAmount,
}: Side & Pick<KnownRow, 'organisationId' | 'environment'>): string {
  return [organisationId, environment, txHash, logIndex, direction, token, from, to, rawAmount].join(' ')
}

/** Whether both are the same movement for the same wallet, at any log position. */
function isSameMovement(row: KnownRow, booking: Booking): boolean {
  return movementOf(row) === movementOf({ ...booking, token: booking.token.address })
}

function movementOf({ txHash, walletId, direction, token, from, to, rawAmount }: Side): string {
  return [txHash, walletId, direction, token, from, to, rawAmount].join(' ')
}

type Side = Pick<Booking, 'txHash' | 'logIndex' | 'walletId' | 'direction' | 'rawAmount'> & {
  readonly token: string
  readonly from: string
  readonly to: string
}

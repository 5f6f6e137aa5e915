import { z } from 'zod'
import { StoredBigInt } from '../../platform/db/columns.ts'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import { type EventId, id } from '../../platform/ids.ts'
import { isInWallet } from './ending.ts'
import { columns, type TransferId, TransferRow } from './store.ts'

/** Marks a transfer of which it is unknown whether its money moved. None of its reservations is released. */
export async function markUnknown(tx: Tx, transferId: TransferId, now: Date): Promise<void> {
  await tx.run(sql`
    update transfers set status = 'pending', reason = null, confirmed_at = null, left_at = null, unknown_at = coalesce(unknown_at, ${now}),
      look_at = null
    where id = ${transferId} and ended_at is null`)
}

/** Marks a transfer whose money is away for too long. It is followed as before, and ends by itself when the chain shows its end. */
export async function markOverdue(tx: Tx, transferId: TransferId, now: Date): Promise<void> {
  await tx.run(sql`
    update transfers set unknown_at = coalesce(unknown_at, ${now}) where id = ${transferId} and ended_at is null`)
}

/** Marks a transfer that left before a limit and is not marked yet; one of a failing partner by a limit of its own. Returns whether it did. */
export async function markUndelivered(
  tx: Tx,
  transferId: TransferId,
  { now, leftBefore, failingBefore }: { readonly now: Date; readonly leftBefore: Date; readonly failingBefore: Date },
): Promise<boolean> {
  const changed = await tx.run(sql`
    update transfers set unknown_at = ${now}
    where id = ${transferId} and ended_at is null and unknown_at is null
      and case when failing_since is null then left_at < ${leftBefore} else failing_since < ${failingBefore} end`)
  return changed === 1
}

/**
 * The unknown fact about a transfer: whether its call moved the money (`nonce`), or where the money is that was sent to
 * a partner.
 */
const Doubt = z.enum(['nonce', 'delivery', 'refund'])
export type Doubt = z.output<typeof Doubt>

const doubt = sql`case when left_at is null then 'nonce' when failing_since is null then 'delivery' else 'refund' end`

/** A transfer that the operator must investigate. */
export interface UnknownTransfer {
  readonly transfer: TransferRow
  readonly unknownAt: Date
  readonly doubt: Doubt
  /** The last status that the partner reported. */
  readonly partnerStatus: string | null
  /** The account of its last transaction, and the nonce. */
  readonly sender: string
  readonly nonce: bigint
}

const UnknownRow = TransferRow.extend({
  unknownAt: z.date(),
  doubt: Doubt,
  partnerStatus: z.string().nullable(),
  sender: z.string(),
  nonce: z.bigint(),
})

/** Of all tenants, for the operator; the oldest first. */
export async function listUnknown(db: Queryable, limit: number): Promise<UnknownTransfer[]> {
  const rows = await db.many(
    UnknownRow,
    sql`
    select t.*, s.sender, s.nonce from (
      select ${columns}, unknown_at, partner_status, ${doubt} as doubt from transfers
      where unknown_at is not null and ended_at is null order by unknown_at limit ${limit}
    ) as t cross join lateral (
      select c.sender, c.nonce from transfer_steps p join chain_transactions c on c.id = p.transaction_id
      where p.transfer_id = t.id and p.kind not in ('claim', 'revoke', 'refill') order by p.position desc limit 1
    ) as s order by unknown_at`,
  )
  return rows.map(({ unknownAt, doubt, partnerStatus, sender, nonce, ...transfer }) => ({
    ...{ transfer, unknownAt, doubt, partnerStatus, sender, nonce },
  }))
}

/** Locks an unknown transfer; undefined for any other. */
export async function lockUnknown(tx: Tx, transferId: TransferId): Promise<Doubt | undefined> {
  const row = await tx.maybeOne(
    z.object({ doubt: Doubt }),
    sql`select ${doubt} as doubt from transfers where id = ${transferId} and unknown_at is not null and ended_at is null for update`,
  )
  return row?.doubt
}

/** The end of a transfer. */
export interface TransferOutcome {
  /** Whether the money arrived. */
  readonly isDelivered: boolean
  /** Whether the money is in the wallet: it never left, or is back. If neither is set, the money left and did not arrive. */
  readonly isInWallet: boolean
  readonly txHash: string | null
}

const EndRow = z.object({
  id: id('wtx'),
  status: z.enum(['confirmed', 'failed']),
  reason: z.string().nullable(),
  txHash: z.string().nullable(),
})

/** The transfers, of any tenant, that have ended. A transfer in a block that may be reorganized has not ended. */
export async function listTransferEnds(
  db: Queryable,
  transferIds: readonly TransferId[],
): Promise<ReadonlyMap<TransferId, TransferOutcome>> {
  const rows = await db.many(
    EndRow,
    sql`
    select id, status, reason, tx_hash from transfers where id = any(${transferIds}::text[]) and ended_at is not null`,
  )
  return new Map(
    rows.map((row) => [
      row.id,
      { isDelivered: row.status === 'confirmed', isInWallet: isInWallet(row), txHash: row.txHash },
    ]),
  )
}

/** The time of the partner's first failure report; now if this is the first. The caller has locked the row. */
export async function markFailing(tx: Tx, transferId: TransferId, now: Date): Promise<Date> {
  const row = await tx.one(
    z.object({ failingSince: z.date() }),
    sql`
    update transfers set failing_since = coalesce(failing_since, ${now}) where id = ${transferId} returning failing_since`,
  )
  return row.failingSince
}

/** Marks that the money is refunded; the transfer then ends. */
export async function markRefunded(tx: Tx, transferId: TransferId, refund: Refund): Promise<void> {
  await tx.run(sql`
    update transfers set refund_tx_hash = ${refund.hash}, refunded_at = ${refund.now} where id = ${transferId} and ended_at is null`)
}

export interface Refund {
  readonly hash: string
  readonly now: Date
}

/** Stores the event that reported the overdue refund. */
export async function markRefundOverdue(tx: Tx, transferId: TransferId, eventId: EventId): Promise<void> {
  await tx.run(sql`update transfers set refund_overdue_event_id = ${eventId} where id = ${transferId}`)
}

/**
 * The amounts of other transfers of this account and token that a transaction refunded; with `isShared`, of those that have no share of the coin of a
 * block. Until the database transaction ends, no other transfer can use that refund.
 */
export async function listPaidBack(
  tx: Tx,
  { id, organisationId, environment, fromNetwork, fromAddress, fromToken }: TransferRow,
  { hash, isShared }: { readonly hash: string; readonly isShared: boolean },
): Promise<readonly bigint[]> {
  const plain = hash.toLowerCase()
  await tx.run(sql`select pg_advisory_xact_lock(hashtextextended(${`refund:${fromNetwork}/${plain}`}, 0))`)
  const rows = await tx.many(
    z.object({ raw: StoredBigInt }),
    sql`
    select raw_amount::text as raw from transfers
    where lower(refund_tx_hash) = ${plain} and organisation_id = ${organisationId} and environment = ${environment} and from_network = ${fromNetwork} and from_address = ${fromAddress} and from_token = ${fromToken}
      and id <> ${id} and not (${isShared} and exists (select from coin_shares s where s.transfer_id = transfers.id))`,
  )
  return rows.map(({ raw }) => raw)
}

/** The amounts of other open transfers of this account, token and partner that the partner reports as failed, newest first. */
export async function listFailing(
  tx: Tx,
  { id, organisationId, environment, fromNetwork, fromAddress, fromToken, partner }: TransferRow,
  limit: number,
): Promise<readonly bigint[]> {
  const rows = await tx.many(
    z.object({ raw: StoredBigInt }),
    sql`
    select raw_amount::text as raw from transfers
    where ended_at is null and failing_since is not null and organisation_id = ${organisationId} and environment = ${environment}
      and from_network = ${fromNetwork} and from_address = ${fromAddress} and from_token = ${fromToken} and partner = ${partner} and id <> ${id}
    order by id desc limit ${limit}`,
  )
  return rows.map(({ raw }) => raw)
}

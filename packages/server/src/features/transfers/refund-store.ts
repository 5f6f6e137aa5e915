import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import { columns, type TransferId, TransferRow } from './store.ts'

/** Since when the partner fails; now where it says so for the first time. The caller holds the row. */
export async function markFailing(tx: Tx, transferId: TransferId, now: Date): Promise<Date> {
  const row = await tx.one(
    z.object({ failingSince: z.date() }),
    sql`
    update transfers set failing_since = coalesce(failing_since, ${now}) where id = ${transferId} returning failing_since`,
  )
  return row.failingSince
}

/** The money is back, and the transfer is about to end with that. */
export async function markRefunded(tx: Tx, transferId: TransferId, refund: Refund): Promise<void> {
  await tx.run(sql`
    update transfers set refund_tx_hash = ${refund.hash ?? null}, refunded_at = ${refund.now} where id = ${transferId} and ended_at is null`)
}

export interface Refund {
  readonly hash: string | undefined
  readonly now: Date
}

/** Transfers that ended while their partner owed a refund and are due to be asked about, longest due first. */
export function listOwed(db: Queryable, now: Date): Promise<TransferRow[]> {
  return db.many(
    TransferRow,
    sql`select ${columns} from transfers where refund_look_at <= ${now} order by refund_look_at limit 100`,
  )
}

/** Null where nobody asks any more. */
export async function setRefundLookAt(db: Queryable, transferId: TransferId, lookAt: Date | null): Promise<void> {
  await db.run(sql`update transfers set refund_look_at = ${lookAt} where id = ${transferId}`)
}

/** Holds the row; whether its refund is still to be asked for. */
export async function lockOwed(tx: Tx, transferId: TransferId): Promise<boolean> {
  const row = await tx.one(
    z.object({ isOwed: z.boolean() }),
    sql`select refund_look_at is not null as is_owed from transfers where id = ${transferId} for update`,
  )
  return row.isOwed
}

/** The money came back after the end, which stays as it was. */
export async function markRefundedLate(tx: Tx, transferId: TransferId, refund: Refund): Promise<void> {
  await tx.run(sql`
    update transfers set refund_tx_hash = ${refund.hash ?? null}, refunded_at = ${refund.now}, refund_look_at = null
    where id = ${transferId} and ended_at is not null`)
}

/** The partner paid out after the end, which stays as it was. */
export async function markArrivedLate(tx: Tx, transferId: TransferId, hash: string | undefined): Promise<void> {
  await tx.run(sql`
    update transfers set destination_tx_hash = ${hash ?? null}, refund_look_at = null where id = ${transferId} and ended_at is not null`)
}

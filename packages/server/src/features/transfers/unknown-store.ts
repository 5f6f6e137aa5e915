import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import { id } from '../../platform/ids.ts'
import { columns, type TransferId, TransferRow } from './store.ts'

/** Marks a transfer of which it is unknown whether its money moved. None of its reservations is released. */
export async function markUnknown(tx: Tx, transferId: TransferId, now: Date): Promise<void> {
  await tx.run(sql`
    update transfers set status = 'pending', reason = null, confirmed_at = null, unknown_at = coalesce(unknown_at, ${now}), look_at = null
    where id = ${transferId} and ended_at is null`)
}

/** A transfer of which it is unknown whether its money moved. */
export interface UnknownTransfer {
  readonly transfer: TransferRow
  readonly unknownAt: Date
  /** The account whose nonce was used, and that nonce. */
  readonly sender: string
  readonly nonce: bigint
}

const UnknownRow = TransferRow.extend({ unknownAt: z.date(), sender: z.string(), nonce: z.bigint() })

/** Of all tenants, for the operator; the oldest first. */
export async function listUnknown(db: Queryable, limit: number): Promise<UnknownTransfer[]> {
  const rows = await db.many(
    UnknownRow,
    sql`
    select t.*, s.sender, s.nonce from (
      select ${columns}, unknown_at from transfers where unknown_at is not null and ended_at is null order by unknown_at limit ${limit}
    ) as t cross join lateral (
      select c.sender, c.nonce from transfer_steps p join chain_transactions c on c.id = p.transaction_id
      where p.transfer_id = t.id order by p.position desc limit 1
    ) as s order by unknown_at`,
  )
  return rows.map(({ unknownAt, sender, nonce, ...transfer }) => ({ transfer, unknownAt, sender, nonce }))
}

/** Locks an unknown transfer; undefined for any other. */
export async function lockUnknown(tx: Tx, transferId: TransferId): Promise<TransferId | undefined> {
  const row = await tx.maybeOne(
    z.object({ id: id('wtx') }),
    sql`select id from transfers where id = ${transferId} and unknown_at is not null and ended_at is null for update`,
  )
  return row?.id
}

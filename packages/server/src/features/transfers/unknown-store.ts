import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
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
 * What is unknown about a transfer: whether its call moved the money (`nonce`), or where the money is that was sent to
 * a partner.
 */
const Doubt = z.enum(['nonce', 'delivery', 'refund'])
export type Doubt = z.output<typeof Doubt>

const doubt = sql`case when left_at is null then 'nonce' when failing_since is null then 'delivery' else 'refund' end`

/** A transfer that the operator has to look at. */
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

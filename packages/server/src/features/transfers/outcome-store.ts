import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import { type EventId, id } from '../../platform/ids.ts'
import type { TransferId, TransferPurpose, TransferRow } from './store.ts'

/** Bytes that move the money are stored. */
export async function markSent(
  tx: Tx,
  sent: readonly { readonly transferId: TransferId; readonly hash: string }[],
): Promise<void> {
  if (sent.length === 0) return
  await tx.run(sql`
    update transfers t set tx_hash = s.hash
    from unnest(${sent.map(({ transferId }) => transferId)}::text[], ${sent.map(({ hash }) => hash)}::text[]) as s (id, hash)
    where t.id = s.id and t.ended_at is null`)
}

export interface SeenTransfer {
  readonly transferId: TransferId
  readonly hash: string
  readonly rawReceived: bigint | undefined
}

/** Blocks show that their money moved; it may still be undone. */
export async function markConfirmed(tx: Tx, seen: readonly SeenTransfer[], now: Date): Promise<void> {
  if (seen.length === 0) return
  await tx.run(sql`
    update transfers t set status = 'confirmed', reason = null, tx_hash = s.hash, confirmed_at = ${now}, left_at = ${now}, raw_received = s.received
    from unnest(
      ${seen.map(({ transferId }) => transferId)}::text[], ${seen.map(({ hash }) => hash)}::text[],
      ${seen.map(({ rawReceived }) => rawReceived?.toString() ?? null)}::numeric[]
    ) as s (id, hash, received)
    where t.id = s.id and t.ended_at is null`)
}

/** What a block showed is no longer so, or shows a failure that may still be undone. */
export async function markPending(tx: Tx, transferId: TransferId, reason: string | null): Promise<void> {
  await tx.run(sql`
    update transfers set status = 'pending', reason = ${reason}, confirmed_at = null, left_at = null, look_at = null where id = ${transferId} and ended_at is null`)
}

export interface TransferEnd {
  readonly transferId: TransferId
  /** Why it failed; undefined where it did what it was to do. */
  readonly fault: string | undefined
}

const Ended = z.object({ id: id('wtx'), purpose: z.enum(['transfer', 'withdrawal']) })

/** One that has ended stays as it is; the approval of one that failed is to be looked at. Answers those that ended by this, and whose they are. */
export async function markEnded(
  tx: Tx,
  ends: readonly TransferEnd[],
  now: Date,
): Promise<ReadonlyMap<TransferId, TransferPurpose>> {
  const rows = await tx.many(
    Ended,
    sql`
    update transfers t set status = case when e.fault is null then 'confirmed' else 'failed' end, reason = e.fault, ended_at = ${now}, look_at = null,
      revoke_at = case when e.fault is not null and exists (select from transfer_steps s
        where s.transfer_id = t.id and s.kind = 'approve' and s.transaction_id is not null) then ${now}::timestamptz end
    from unnest(
      ${ends.map(({ transferId }) => transferId)}::text[], ${ends.map(({ fault }) => fault ?? null)}::text[]
    ) as e (id, fault)
    where t.id = e.id and t.ended_at is null returning t.id, t.purpose`,
  )
  return new Map(rows.map((row) => [row.id, row.purpose]))
}

export type Answered = NonNullable<TransferRow['answered']>

/** What first answers said; a later one changes nothing, since nobody knows which of them arrived. */
export async function markAnswered(
  tx: Tx,
  told: readonly { readonly transferId: TransferId; readonly answered: Answered }[],
): Promise<void> {
  await tx.run(sql`
    update transfers t set answered = a.answered
    from unnest(${told.map(({ transferId }) => transferId)}::text[], ${told.map(({ answered }) => answered)}::text[]) as a (id, answered)
    where t.id = a.id and t.answered is null`)
}

export async function markTold(tx: Tx, transferId: TransferId, eventId: EventId): Promise<void> {
  await tx.run(sql`update transfers set event_id = ${eventId} where id = ${transferId} and event_id is null`)
}

/** Transfers that ended before this instant while nobody had been answered: their caller's process died. */
export async function listUnanswered(db: Queryable, before: Date): Promise<TransferId[]> {
  const rows = await db.many(
    z.object({ id: id('wtx') }),
    sql`
    select id from transfers where ended_at < ${before} and event_id is null and answered is null and purpose = 'transfer'
    order by ended_at limit 100`,
  )
  return rows.map((row) => row.id)
}

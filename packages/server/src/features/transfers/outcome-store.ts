import { z } from 'zod'
import type { ChainTransactionId } from '../../chain/port.ts'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import { type EventId, id } from '../../platform/ids.ts'
import { columns, type TransferId, TransferRow, transferPurposes } from './store.ts'

/** Marks transfers whose signed bytes are stored. */
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

/** As `markSent`, given the transactions of their steps. */
export async function markStepsSent(
  tx: Tx,
  sent: readonly { readonly id: ChainTransactionId; readonly hash: string }[],
): Promise<void> {
  await tx.run(sql`
    with locked as (
      select t.id, given.hash
      from unnest(${sent.map(({ id }) => id)}::text[], ${sent.map(({ hash }) => hash)}::text[]) as given (transaction_id, hash)
        join transfer_steps s using (transaction_id) join transfers t on t.id = s.transfer_id
      where s.kind in ('send', 'partner') and t.ended_at is null order by t.id for update of t
    )
    update transfers t set tx_hash = h.hash from locked h where t.id = h.id`)
}

export interface SeenTransfer {
  readonly transferId: TransferId
  readonly hash: string
  readonly rawReceived: bigint | undefined
}

/** Marks transfers whose money moved in a block that may still be reorganized. */
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

/** Marks a transfer whose block is gone, or shows a failure that may still be reorganized. */
export async function markPending(tx: Tx, transferId: TransferId, reason: string | null): Promise<void> {
  await tx.run(sql`
    update transfers set status = 'pending', reason = ${reason}, confirmed_at = null, left_at = null, look_at = null where id = ${transferId} and ended_at is null`)
}

/** Clears the block data of transfers. `hash`: whether to keep the hash of their transaction. */
export async function markUndone(
  tx: Tx,
  transferIds: readonly TransferId[],
  hash: 'kept' | 'forgotten',
): Promise<void> {
  await tx.run(sql`
    update transfers set status = 'pending', reason = null, confirmed_at = null, left_at = null, look_at = null,
      tx_hash = case when ${hash === 'kept'} then tx_hash end
    where id = any(${transferIds}::text[]) and ended_at is null`)
}

export interface TransferEnd {
  readonly transferId: TransferId
  /** Why it failed; undefined if it succeeded. */
  readonly fault: string | undefined
  /** Its block, if that was not stored before. */
  readonly seen?: SeenTransfer | undefined
}

/** `isRevokeDue`: its approval must be revoked first. */
const Ended = TransferRow.extend({ purpose: z.enum(transferPurposes), isRevokeDue: z.boolean() })
export type EndedTransfer = z.output<typeof Ended>

/**
 * Ends transfers; those that ended before stay as they are. The approval of a failed one is due for a check. Returns those that this call
 * ended.
 */
export function markEnded(tx: Tx, ends: readonly TransferEnd[], now: Date): Promise<EndedTransfer[]> {
  return tx.many(
    Ended,
    sql`
    update transfers set status = case when fault is null then 'confirmed' else 'failed' end, reason = fault, ended_at = ${now}, look_at = null,
      tx_hash = coalesce(seen_hash, tx_hash), raw_received = coalesce(seen_received, raw_received),
      confirmed_at = case when seen_hash is null then confirmed_at else ${now}::timestamptz end,
      left_at = case when seen_hash is null then left_at else ${now}::timestamptz end,
      raw_fee = coalesce((select sum(s.raw_fee) from transfer_steps s where s.transfer_id = id and s.kind not in ('claim', 'revoke')), raw_fee),
      revoke_at = case when fault is not null and exists (select from transfer_steps s
        where s.transfer_id = id and s.kind = 'approve' and s.transaction_id is not null) then ${now}::timestamptz end
    from unnest(
      ${ends.map(({ transferId }) => transferId)}::text[], ${ends.map(({ fault }) => fault ?? null)}::text[],
      ${ends.map(({ seen }) => seen?.hash ?? null)}::text[], ${ends.map(({ seen }) => seen?.rawReceived?.toString() ?? null)}::numeric[]
    ) as given (given_id, fault, seen_hash, seen_received)
    where id = given_id and ended_at is null returning ${columns}, purpose, revoke_at is not null as is_revoke_due`,
  )
}

export type Answered = NonNullable<TransferRow['answered']>

/**
 * Reads transfers for responses to their callers, and stores the reported state; a later response does not change it, since nobody knows
 * which response arrived. One statement, which locks the rows in a fixed order, so that none deadlock.
 */
export function takeAnswered(db: Queryable, transferIds: readonly TransferId[]): Promise<TransferRow[]> {
  return db.many(
    TransferRow,
    sql`
    with locked as (
      select ${columns} from transfers where id = any(${transferIds}::text[]) order by id for update
    ), answered as (
      update transfers t set answered = case when h.reason is not null then 'reverted' when h.status = 'confirmed' then 'confirmed' else 'pending' end
      from locked h where t.id = h.id and t.answered is null
    )
    select * from locked`,
  )
}

export async function markReported(tx: Tx, transferId: TransferId, eventId: EventId): Promise<void> {
  await tx.run(sql`update transfers set event_id = ${eventId} where id = ${transferId} and event_id is null`)
}

/** Transfers that ended before this instant without a response: their caller's process died. */
export async function listUnanswered(db: Queryable, before: Date): Promise<TransferId[]> {
  const rows = await db.many(
    z.object({ id: id('wtx') }),
    sql`
    select id from transfers where ended_at < ${before} and event_id is null and answered is null and purpose = 'transfer'
    order by ended_at limit 100`,
  )
  return rows.map((row) => row.id)
}

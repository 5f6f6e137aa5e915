import { z } from 'zod'
import type { RouteQuote } from '../../partners/routing/port.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { id } from '../../platform/ids.ts'
import { columns, StepRow as Step, type StepRow, stepColumns, type TransferId, TransferRow } from './store.ts'

export interface StepFee {
  readonly step: StepRow
  /** 0 where no block has the step's transaction. */
  readonly rawFee: bigint
}

/** Stores the fees of steps by the newest blocks; a transfer's fee is the sum of all its steps on the source network. */
export async function markStepFees(tx: Tx, fees: readonly StepFee[]): Promise<void> {
  if (fees.length === 0) return
  const ids = fees.map(({ step }) => step.transferId)
  await tx.run(sql`
    update transfer_steps s set raw_fee = f.fee
    from unnest(${ids}::text[], ${fees.map(({ step }) => step.position)}::integer[], ${fees.map(({ rawFee }) => rawFee)}::numeric[]) as f (id, position, fee)
    where s.transfer_id = f.id and s.position = f.position`)
  await tx.run(sql`
    update transfers t set raw_fee = (select sum(raw_fee) from transfer_steps where transfer_id = t.id and kind not in ('claim', 'revoke'))
    where id = any(${ids}::text[]) and ended_at is null`)
}

/** Stores fees and marks the steps final in one statement. A transfer's total fee is computed when it ends. */
export async function markStepsFinal(tx: Tx, fees: readonly StepFee[], now: Date): Promise<void> {
  if (fees.length === 0) return
  await tx.run(sql`
    update transfer_steps s set raw_fee = f.fee, done_at = coalesce(s.done_at, ${now})
    from unnest(
      ${fees.map(({ step }) => step.transferId)}::text[], ${fees.map(({ step }) => step.position)}::integer[],
      ${fees.map(({ rawFee }) => rawFee)}::numeric[]
    ) as f (id, position, fee)
    where s.transfer_id = f.id and s.position = f.position`)
}

/**
 * What the steps of transfers cost their wallets, as far as blocks show: a top-up counts with its value, and gas that the child pays from
 * it does not count again. In wei; on Tempo in the smallest unit of the token that pays.
 */
export async function listGasCosts(
  tx: Tx,
  transferIds: readonly TransferId[],
): Promise<ReadonlyMap<TransferId, bigint>> {
  const rows = await tx.many(
    z.object({ id: id('wtx'), raw: z.string().transform((text) => BigInt(text)) }),
    sql`
    select transfer_id as id, (coalesce(sum(raw_fee) filter (where kind = 'top-up'), 0) + greatest(
      coalesce(sum(value) filter (where kind = 'top-up' and raw_fee > 0), 0),
      coalesce(sum(raw_fee) filter (where kind in ('send', 'approve', 'partner')), 0)))::text as raw
    from transfer_steps where transfer_id = any(${transferIds}::text[]) group by transfer_id`,
  )
  return new Map(rows.map(({ id: transferId, raw }) => [transferId, raw]))
}

/** Marks steps whose transactions are at their depth, or can never be in a block. */
export async function markStepsDone(tx: Tx, steps: readonly StepRow[], now: Date): Promise<void> {
  if (steps.length === 0) return
  await tx.run(sql`
    update transfer_steps s set done_at = ${now}
    from unnest(${steps.map(({ transferId }) => transferId)}::text[], ${steps.map(({ position }) => position)}::integer[]) as d (id, position)
    where s.transfer_id = d.id and s.position = d.position and s.done_at is null`)
}

/** Marks that a block shows the money at the partner's contract; it may still be reorganized. */
export async function markLeft(
  tx: Tx,
  transferId: TransferId,
  seen: { readonly hash: string; readonly now: Date },
): Promise<void> {
  await tx.run(sql`
    update transfers set tx_hash = ${seen.hash}, reason = null, left_at = ${seen.now} where id = ${transferId} and ended_at is null`)
}

/** Sets the next poll; null for none until something else happens. */
export async function setNextPollAt(tx: Tx, transferId: TransferId, lookAt: Date | null): Promise<void> {
  await tx.run(sql`update transfers set look_at = ${lookAt} where id = ${transferId} and ended_at is null`)
}

/** Replaces the quote of a transfer that expired before the transfer began. */
export async function replaceQuote(tx: Tx, transferId: TransferId, quote: RouteQuote): Promise<void> {
  await tx.run(sql`
    update transfers set partner_reference = ${quote.reference}, quote_expires_at = ${quote.expiresAt}, raw_out = ${quote.rawOut.toString()},
      raw_out_min = ${quote.rawOutMin.toString()}, look_at = null
    where id = ${transferId} and ended_at is null`)
}

export async function setPartnerStatus(tx: Tx, transferId: TransferId, partnerStatus: string): Promise<void> {
  await tx.run(sql`
    update transfers set partner_status = ${partnerStatus} where id = ${transferId} and partner_status is distinct from ${partnerStatus}`)
}

export interface Arrival {
  readonly rawReceived: bigint | undefined
  readonly receivedToken: string | undefined
  readonly destinationTxHash: string | undefined
  readonly now: Date
}

/** Stores the arrival that the partner reports; the caller has locked the row. */
export async function markArrived(tx: Tx, transferId: TransferId, arrival: Arrival): Promise<void> {
  await tx.run(sql`
    update transfers set raw_received = ${arrival.rawReceived?.toString() ?? null}, received_token = ${arrival.receivedToken ?? null},
      destination_tx_hash = ${arrival.destinationTxHash ?? null}, confirmed_at = ${arrival.now}
    where id = ${transferId} and ended_at is null`)
}

/**
 * Assigns the delivered message to a transfer, and releases the message that it had before. Returns false, and changes nothing, if the
 * message belongs to another transfer. The caller has locked the row; of two concurrent calls the index refuses the second.
 */
export async function takeMessage(
  tx: Tx,
  { id, toNetwork }: Pick<TransferRow, 'id' | 'toNetwork'>,
  message: string,
): Promise<boolean> {
  const changed = await tx.run(sql`
    update transfers set partner_message = ${message}
    where id = ${id} and not exists (
      select from transfers where to_network = ${toNetwork} and partner_message = ${message} and id <> ${id})`)
  return changed === 1
}

/** A condition: whether any partner transfer is due for a poll. */
export function isAnyDueForPoll(now: Date): Sql {
  return sql`(select look_at from transfers where look_at <= ${now} and ended_at is null order by look_at limit 1) is not null`
}

/** Partner transfers that are due for a poll, longest due first. */
export function listDueForPoll(db: Queryable, now: Date): Promise<TransferRow[]> {
  return db.many(
    TransferRow,
    sql`select ${columns} from transfers where look_at <= ${now} and ended_at is null order by look_at limit 100`,
  )
}

/** The steps of a transfer in their order, with the time at which each was done. */
export function listSteps(db: Queryable, transferId: TransferId): Promise<(StepRow & { doneAt: Date | null })[]> {
  return db.many(
    Step.extend({ doneAt: z.date().nullable() }),
    sql`select ${stepColumns}, done_at from transfer_steps where transfer_id = ${transferId} order by position`,
  )
}

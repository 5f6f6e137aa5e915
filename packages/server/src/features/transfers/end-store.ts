import { networks } from '@purser/protocol'
import { z } from 'zod'
import { type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { id } from '../../platform/ids.ts'
import { settingActualGas } from '../wallets/index.ts'
import type { SeenTransfer, StepFee } from './outcome-store.ts'
import { columns, isOpen, type TransferId, TransferRow, transferPurposes } from './store.ts'

/** Stores fees and marks the steps final. A transfer's total fee is computed when it ends. */
export async function markStepsFinal(tx: Tx, fees: readonly StepFee[], now: Date): Promise<void> {
  if (fees.length > 0) await tx.run(sql`with ${feesOf(fees.map((fee) => ({ fee })))} ${storingFees(now)}`)
}

/** For a `with` list: the fees as rows `fees`. */
export function feesOf(decided: readonly { readonly fee?: StepFee | undefined }[]): Sql {
  const fees = decided.flatMap(({ fee }) => fee ?? [])
  return sql`fees as materialized (
      select * from unnest(
        ${fees.map(({ step }) => step.transferId)}::text[], ${fees.map(({ step }) => step.position)}::integer[],
        ${fees.map(({ rawFee }) => rawFee)}::numeric[]
      ) as given (transfer_id, position, raw_fee)
    )`
}

/** The statement that stores the rows `fees`. */
export function storingFees(now: Date): Sql {
  return sql`update transfer_steps s set raw_fee = f.raw_fee, done_at = coalesce(s.done_at, ${now})
      from fees f where s.transfer_id = f.transfer_id and s.position = f.position`
}

export interface TransferEnd {
  readonly transferId: TransferId
  /** Why it failed; undefined if it succeeded. */
  readonly fault: string | undefined
  /** Its block, if that was not stored before. */
  readonly seen?: SeenTransfer | undefined
  /** The fee of its step that is final now, if that was not stored before. */
  readonly fee?: StepFee | undefined
}

const Ended = TransferRow.extend({
  purpose: z.enum(transferPurposes),
  isRevokeDue: z.boolean(),
  hasSteps: z.boolean(),
  approvedBy: id('ctx').nullable(),
})
/** `isRevokeDue`: its approval must be revoked first. `approvedBy`: the transaction that approves. */
export type EndedTransfer = z.output<typeof Ended>

/** Networks whose gas is paid in the token that moves. A coin has 18 decimals. */
const networksWithoutCoin = networks.filter(({ nativeCoin }) => nativeCoin === null).map(({ name }) => name)

/**
 * Ends transfers; those that ended before stay as they are. The approval of a failed one is due for a check. The actual cost of their steps, as
 * far as blocks show, replaces the maximum that counted against the wallets' policies: a top-up counts with its value, and gas that the child
 * pays from it does not count again. One that ends before it has steps, as without its approval, costs nothing. Returns those that this call ended.
 */
export function markEnded(tx: Tx, ends: readonly TransferEnd[], now: Date): Promise<EndedTransfer[]> {
  return tx.many(
    Ended,
    sql`
    with ends as materialized (
      select * from unnest(
        ${ends.map(({ transferId }) => transferId)}::text[], ${ends.map(({ fault }) => fault ?? null)}::text[],
        ${ends.map(({ seen }) => seen?.hash ?? null)}::text[], ${ends.map(({ seen }) => seen?.rawReceived?.toString() ?? null)}::numeric[],
        ${ends.map(({ seen }) => seen?.isReported ?? false)}::boolean[]
      ) as given (given_id, fault, seen_hash, seen_received, is_reported)
    ), ${feesOf(ends)}, done as (${storingFees(now)}), costs as (
      select transfer_id, sum(fee) filter (where kind not in ('claim', 'revoke')) as fee,
        coalesce(sum(fee) filter (where kind = 'top-up'), 0) + greatest(
          coalesce(sum(value) filter (where kind = 'top-up' and fee > 0), 0),
          coalesce(sum(fee) filter (where kind in ('send', 'approve', 'partner')), 0)) as gas,
        (array_agg(transaction_id order by position desc) filter (where kind = 'approve' and transaction_id is not null))[1] as approved_by
      from (
        select s.transfer_id, s.position, s.kind, s.value, s.transaction_id, coalesce(f.raw_fee, s.raw_fee) as fee
        from ends join transfer_steps s on s.transfer_id = given_id left join fees f on f.transfer_id = s.transfer_id and f.position = s.position
      ) as steps group by transfer_id
    ), ended as (
      update transfers set status = case when fault is null then 'confirmed' else 'failed' end, reason = fault, ended_at = ${now}, look_at = null,
        tx_hash = coalesce(seen_hash, tx_hash), raw_received = coalesce(seen_received, raw_received),
        confirmed_at = case when seen_hash is null then confirmed_at else ${now}::timestamptz end,
        left_at = case when seen_hash is null then left_at else ${now}::timestamptz end,
        answered = case when is_reported then coalesce(answered, 'confirmed') else answered end,
        raw_fee = coalesce(costs.fee, raw_fee),
        revoke_at = case when fault is not null and approved_by is not null then ${now}::timestamptz end
      from ends left join costs on transfer_id = given_id
      where id = given_id and ${isOpen}
      returning ${columns}, purpose, revoke_at is not null as is_revoke_due, transfer_id is not null as has_steps, approved_by,
        gas * 10::numeric ^ (case when from_network = any(${networksWithoutCoin}::text[]) then 18 - decimals else 0 end) as atto_gas
    ), settled as (${settingActualGas(sql`select id, coalesce(atto_gas, 0) from ended`)})
    select ${columns}, purpose, is_revoke_due, has_steps, approved_by from ended`,
  )
}

import { type Hex, networks } from '@purser/protocol'
import { z } from 'zod'
import type { ChainTransactionId } from '../../chain/port.ts'
import { StoredHex } from '../../platform/db/columns.ts'
import { anyLength, type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { onAnyOf } from '../../platform/db/on-any-of.ts'
import { type EventId, id } from '../../platform/ids.ts'
import { settingActualGas } from '../wallets/index.ts'
import { columns, isOpen, type StepRow, type TransferId, TransferRow, transferPurposes } from './store.ts'

/** Marks transfers whose signed bytes are stored. */
export async function markSent(
  tx: Tx,
  sent: readonly { readonly transferId: TransferId; readonly hash: string }[],
): Promise<void> {
  if (sent.length === 0) return
  await tx.run(sql`
    update transfers t set tx_hash = s.hash
    from unnest(${sent.map(({ transferId }) => transferId)}::text[], ${sent.map(({ hash }) => hash)}::text[]) as s (id, hash)
    where t.id = s.id and ${isOpen}`)
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
      where s.kind in ('send', 'partner') and ${isOpen} order by t.id for update of t
    )
    update transfers t set tx_hash = h.hash from locked h where t.id = h.id`)
}

export interface SeenTransfer {
  readonly transferId: TransferId
  readonly hash: string
  readonly rawReceived: bigint | undefined
  /** Whether a caller waits for this state, which is then stored as reported. */
  readonly isReported?: boolean
}

/** Marks transfers whose money moved in a block that may still be reorganized. Returns those that are now reported. */
export async function markConfirmed(tx: Tx, seen: readonly SeenTransfer[], now: Date): Promise<TransferRow[]> {
  if (seen.length === 0) return []
  return tx.many(
    TransferRow,
    sql`
    with marked as (
      update transfers set status = 'confirmed', reason = null, tx_hash = s.hash, confirmed_at = ${now}, left_at = ${now}, raw_received = s.received,
        answered = case when s.is_reported then coalesce(answered, 'confirmed') else answered end
      from unnest(
        ${seen.map(({ transferId }) => transferId)}::text[], ${seen.map(({ hash }) => hash)}::text[],
        ${seen.map(({ rawReceived }) => rawReceived?.toString() ?? null)}::numeric[], ${seen.map(({ isReported = false }) => isReported)}::boolean[]
      ) as s (given_id, hash, received, is_reported)
      where id = s.given_id and ${isOpen} returning ${columns}, s.is_reported
    )
    select * from marked where is_reported`,
  )
}

/** Marks a transfer whose block is gone, or shows a failure that may still be reorganized. */
export async function markPending(tx: Tx, transferId: TransferId, reason: string | null): Promise<void> {
  await tx.run(sql`
    update transfers set status = 'pending', reason = ${reason}, confirmed_at = null, left_at = null, look_at = null where id = ${transferId} and ended_at is null`)
}

/** Clears the block data of transfers, and with `clear` the hash of their transaction. */
export async function markUndone(tx: Tx, transferIds: readonly TransferId[], hash: 'keep' | 'clear'): Promise<void> {
  await tx.run(sql`
    update transfers set status = 'pending', reason = null, confirmed_at = null, left_at = null, look_at = null,
      tx_hash = case when ${hash === 'keep'} then tx_hash end
    where id = any(${transferIds}::text[]) and ${isOpen}`)
}

export type ReportedState = NonNullable<TransferRow['reportedState']>

/**
 * Reads transfers for responses to their callers, and stores the reported state; a later response does not change it, since nobody knows
 * which response arrived. One statement, which locks the rows in a fixed order, so that none deadlock.
 */
export function storeReportedStates(db: Queryable, transferIds: readonly TransferId[]): Promise<TransferRow[]> {
  return db.many(
    TransferRow,
    sql`
    with locked as (
      select ${columns} from transfers where id = any(${anyLength(transferIds)}) order by id for update
    ), reported as (
      update transfers t set answered = case when h.reason is not null then 'reverted' when h.status = 'confirmed' then 'confirmed' else 'pending' end
      from locked h where t.id = h.id and t.answered is null
    )
    select * from locked`,
  )
}

/** Stores the events that reported the ends of transfers. */
export async function markReported(
  tx: Tx,
  reported: readonly { readonly transferId: TransferId; readonly eventId: EventId }[],
): Promise<void> {
  if (reported.length === 0) return
  await tx.run(sql`
    update transfers set event_id = given.event_id
    from unnest(
      ${reported.map(({ transferId }) => transferId)}::text[], ${reported.map(({ eventId }) => eventId)}::text[]
    ) as given (transfer_id, event_id)
    where id = given.transfer_id and transfers.event_id is null`)
}

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
    where id = any(${ids}::text[]) and ${isOpen}`)
}

/** Marks steps whose transactions are at their depth, or can never be in a block. */
export async function markStepsDone(tx: Tx, steps: readonly StepRow[], now: Date): Promise<void> {
  if (steps.length === 0) return
  await tx.run(sql`
    update transfer_steps s set done_at = ${now}
    from unnest(${steps.map(({ transferId }) => transferId)}::text[], ${steps.map(({ position }) => position)}::integer[]) as d (id, position)
    where s.transfer_id = d.id and s.position = d.position and s.done_at is null`)
}

/** Stores fees and marks the steps final. A transfer's total fee is computed when it ends. */
export async function markStepsFinal(tx: Tx, fees: readonly StepFee[], now: Date): Promise<void> {
  if (fees.length > 0) await tx.run(sql`with ${feesOf(fees.map((fee) => ({ fee })))} ${storingFees(now)}`)
}

/** For a `with` list: the fees as rows `fees`. */
function feesOf(decided: readonly { readonly fee?: StepFee | undefined }[]): Sql {
  const fees = decided.flatMap(({ fee }) => fee ?? [])
  return sql`fees as materialized (
      select * from unnest(
        ${fees.map(({ step }) => step.transferId)}::text[], ${fees.map(({ step }) => step.position)}::integer[],
        ${fees.map(({ rawFee }) => rawFee)}::numeric[]
      ) as given (transfer_id, position, raw_fee)
    )`
}

/** The statement that stores the rows `fees`. */
function storingFees(now: Date): Sql {
  return sql`update transfer_steps s set raw_fee = f.raw_fee, done_at = coalesce(s.done_at, ${now})
      from fees f where s.transfer_id = f.transfer_id and s.position = f.position`
}

export interface TransferEnd {
  readonly transferId: TransferId
  /** The reason why it failed; undefined if it succeeded. */
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
 * pays from it does not count again. The gas that was reserved for its claim no longer counts. One that ends before it has steps, as without its approval, costs nothing. Returns those that this call ended.
 */
export function markTransfersEnded(tx: Tx, ends: readonly TransferEnd[], now: Date): Promise<EndedTransfer[]> {
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
    ), settled as (${settingActualGas(sql`
      select id, coalesce(atto_gas, 0) from ended union all select id || ' claim', 0 from ended`)})
    select * from ended`,
  )
}

/** A block that transfers wait for: it is at the payment depth, and not final. */
export interface AwaitedBlock {
  readonly number: bigint
  readonly hash: Hex
}

/** Outcome of a transfer according to a block at the payment depth. */
export interface Settled {
  readonly transferId: TransferId
  /** The transaction that decides it, and its block; undefined if it is not one of the wallet's: `seen` has its hash. */
  readonly transactionId: ChainTransactionId | undefined
  readonly block: AwaitedBlock
  /** The reason why it fails; undefined where the money moved. */
  readonly fault: string | undefined
  /** The block's data, if it was not stored before. */
  readonly seen?: SeenTransfer | undefined
  /** The fee of its step that is final now, if that was not stored before. */
  readonly fee?: StepFee | undefined
}

/**
 * Stores the outcome at the payment depth. The transfer stays open until that block is final. Returns those that are now reported.
 */
export function markSettled(tx: Tx, settled: readonly Settled[], now: Date): Promise<TransferRow[]> {
  return tx.many(
    TransferRow,
    sql`
    with ${feesOf(settled)}, done as (${storingFees(now)}), marked as (
      update transfers set settled_by = s.transaction_id, settled_block = s.block_number, settled_block_hash = s.block_hash, settled_fault = s.fault, finality_at = ${now},
        status = case when s.seen_hash is null then status else 'confirmed' end, reason = case when s.seen_hash is null then reason end,
        tx_hash = coalesce(s.seen_hash, tx_hash), raw_received = coalesce(s.seen_received, raw_received),
        confirmed_at = case when s.seen_hash is null then confirmed_at else ${now}::timestamptz end,
        left_at = case when s.seen_hash is null then left_at else ${now}::timestamptz end,
        answered = case when s.is_reported then coalesce(answered, 'confirmed') else answered end
      from unnest(
        ${settled.map(({ transferId }) => transferId)}::text[], ${settled.map(({ transactionId }) => transactionId ?? null)}::text[],
        ${settled.map(({ block }) => block.number)}::bigint[], ${settled.map(({ block }) => block.hash)}::text[], ${settled.map(({ fault }) => fault ?? null)}::text[],
        ${settled.map(({ seen }) => seen?.hash ?? null)}::text[], ${settled.map(({ seen }) => seen?.rawReceived?.toString() ?? null)}::numeric[],
        ${settled.map(({ seen }) => seen?.isReported ?? false)}::boolean[]
      ) as s (given_id, transaction_id, block_number, block_hash, fault, seen_hash, seen_received, is_reported)
      where id = s.given_id and ${isOpen} returning ${columns}, s.is_reported
    )
    select * from marked where is_reported`,
  )
}

const DueRow = z.object({
  transferId: id('wtx'),
  transactionId: id('ctx').nullable(),
  hash: StoredHex,
  blockNumber: z.bigint().nullable(),
  blockHash: StoredHex,
  fault: z.string().nullable(),
})
/** `blockNumber`: null if an earlier version did not store it. */
export type DueTransfer = z.output<typeof DueRow>

/** A condition: whether any transfer of the networks waits for its block to be final. */
export function isAnyAwaitingFinality(networks: readonly string[]): Sql {
  return onAnyOf(
    networks,
    sql`select t.finality_at from transfers t where t.from_network = n.network and t.finality_at is not null limit 1`,
  )
}

/** The number of its block; 0 if an earlier version did not store it, so that its block is checked whatever is final. */
const awaitedBlock = sql`coalesce(t.settled_block, 0)`

/** Transfers of a network whose blocks are at most this one and due for a check, in the order of the blocks. */
export function listToFinalize(
  db: Queryable,
  network: string,
  { final, now, limit }: { readonly final: bigint; readonly now: Date; readonly limit: number },
): Promise<DueTransfer[]> {
  return db.many(
    DueRow,
    sql`${selectDue} where t.from_network = ${network} and t.finality_at <= ${now} and ${awaitedBlock} <= ${final} and h.hash is not null
      order by ${awaitedBlock} limit ${limit}`,
  )
}

/** Transfers of a network that wait for one of these blocks. */
export function listAwaiting(
  db: Queryable,
  network: string,
  blocks: readonly AwaitedBlock[],
  limit: number,
): Promise<DueTransfer[]> {
  const given = sql`unnest(${blocks.map(({ number }) => number)}::bigint[], ${blocks.map(({ hash }) => hash)}::text[])`
  return db.many(
    DueRow,
    sql`${selectDue} where t.from_network = ${network} and t.finality_at is not null and h.hash is not null
      and (${awaitedBlock}, t.settled_block_hash) in (select * from ${given}) limit ${limit}`,
  )
}

const selectDue = sql`
    select t.id as transfer_id, t.settled_by as transaction_id, h.hash, t.settled_block as block_number, t.settled_block_hash as block_hash, t.settled_fault as fault
    from transfers t left join chain_transactions c on c.id = t.settled_by
      cross join lateral (select case when t.settled_by is null then t.tx_hash else c.mined_hash end as hash) h`

/** The blocks above this one that transfers of a network wait for, lowest first. Reads one index entry for each, whatever the number of transfers. */
export function listAwaitedBlocks(
  db: Queryable,
  network: string,
  { above, limit }: { readonly above: bigint; readonly limit: number },
): Promise<AwaitedBlock[]> {
  const next = (isBehind: Sql): Sql => sql`
      select ${awaitedBlock} as number, t.settled_block_hash as hash from transfers t
      where t.from_network = ${network} and t.finality_at is not null and ${isBehind}
      order by ${awaitedBlock}, t.settled_block_hash limit 1`
  return db.many(
    z.object({ number: z.bigint(), hash: StoredHex }),
    sql`
    with recursive blocks as (
      (${next(sql`${awaitedBlock} > ${above}`)})
      union all
      select n.number, n.hash from blocks b
        cross join lateral (${next(sql`(${awaitedBlock}, t.settled_block_hash) > (b.number, b.hash)`)}) n
    )
    select number, hash from blocks limit ${limit}`,
  )
}

/** Postpones their next check to this instant. */
export async function postponeFinality(
  db: Queryable,
  transferIds: readonly TransferId[],
  checkAt: Date,
): Promise<void> {
  await db.run(sql`
    update transfers set finality_at = ${checkAt} where id = any(${transferIds}::text[]) and finality_at is not null`)
}

/** Locks those that still wait for this block, in the common lock order of transfers. */
export async function lockSettled(tx: Tx, due: readonly DueTransfer[]): Promise<TransferId[]> {
  const rows = await tx.many(
    z.object({ id: id('wtx') }),
    sql`
    select t.id from transfers t join unnest(${due.map((one) => one.transferId)}::text[], ${due.map((one) => one.blockHash)}::text[]) as d (id, block_hash)
      on t.id = d.id and t.settled_block_hash = d.block_hash
    where t.finality_at is not null order by t.id for update of t`,
  )
  return rows.map((row) => row.id)
}

/** Marks transfers whose block is final, or that no longer wait for it. */
export async function markFinal(tx: Tx, transferIds: readonly TransferId[]): Promise<void> {
  await tx.run(sql`update transfers set finality_at = null where id = any(${transferIds}::text[])`)
}

/** Marks a transfer whose block is gone: its outcome is void, and its step must be executed again. */
export async function markUnsettled(tx: Tx, { transferId, transactionId }: DueTransfer): Promise<void> {
  await tx.run(sql`
    update transfers set status = 'pending', reason = null, confirmed_at = null, left_at = null, look_at = null, raw_received = null,
      settled_by = null, settled_block = null, settled_block_hash = null, settled_fault = null, finality_at = null
    where id = ${transferId} and ended_at is null`)
  await tx.run(
    sql`update transfer_steps set done_at = null where transfer_id = ${transferId} and transaction_id = ${transactionId}`,
  )
}

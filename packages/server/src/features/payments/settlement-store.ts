import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import { id, type PaymentId } from '../../platform/ids.ts'
import { StoredAuthorization, StoredPermit2 } from './store.ts'

/** What the settlement lane needs of a payment. It works for all tenants at once: the lane is the operator's. */
export const SettlementRow = z.object({
  id: id('pay'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  walletId: z.string().nullable(),
  network: z.string(),
  chain: z.string(),
  token: z.string(),
  decimals: z.number(),
  asset: z.string(),
  rawAmount: z.string().transform((text) => BigInt(text)),
  payTo: z.string(),
  payer: z.string(),
  settlement: z.union([StoredPermit2, StoredAuthorization]),
  settleAttempt: z.number(),
  settlingAt: z.date().nullable(),
  createdAt: z.date(),
  status: z.enum(['verified', 'settling', 'settled', 'settlement_failed', 'voided']),
})
export type SettlementRow = z.output<typeof SettlementRow>

const IdRow = z.object({ id: z.string() })
const WaitingRow = z.object({ waiting: z.bigint(), oldest: z.date().nullable() })

const columns = sql`id, organisation_id, environment, wallet_id, network, chain, token, decimals, asset, raw_amount, pay_to, payer, settlement,
  settle_attempt, settling_at, created_at, status`

/** Asks for settlement. Only a verified payment moves, and of scheme `upto` none, since nobody said how much; asking again changes nothing. */
export function markSettling(db: Queryable, paymentIds: readonly PaymentId[], now: Date): Promise<number> {
  return db.run(sql`
    update payments set status = 'settling', settling_at = ${now}
    where id = any(${paymentIds}::text[]) and status = 'verified' and scheme <> 'upto'`)
}

/**
 * Asks for settlement of an `upto` payment with this amount, in the token's smallest unit; undefined unless it was verified and permits as much.
 */
export function markCharged(
  db: Queryable,
  paymentId: PaymentId,
  amount: bigint,
  now: Date,
): Promise<SettlementRow | undefined> {
  const charged = amount.toString()
  return db.maybeOne(
    SettlementRow,
    sql`
    update payments set status = 'settling', settling_at = ${now}, raw_amount = ${charged}::numeric,
      settlement = jsonb_set(settlement, '{charged}', to_jsonb(${charged}::text))
    where id = ${paymentId} and status = 'verified' and settlement ->> 'kind' = 'permit2' and settlement ->> 'scheme' = 'upto'
      and (settlement ->> 'permitted')::numeric >= ${charged}::numeric
    returning ${columns}`,
  )
}

const PayerRow = z.object({ payer: z.templateLiteral(['0x', z.string()]) })

/** Who pays the oldest waiting payments of a network, each once, without locking anything. */
export async function listWaitingPayers(db: Queryable, network: string, most: number): Promise<`0x${string}`[]> {
  const rows = await db.many(
    PayerRow,
    sql`
    select distinct payer from (
      select payer from payments
      where network = ${network} and status = 'settling' and chain_transaction_id is null and not unresolved
      order by settling_at limit ${most}) as oldest`,
  )
  return rows.map(({ payer }) => payer)
}

/** Takes waiting payments of one network, oldest first; another process that looks at the same moment gets others. */
export function lockWaiting(tx: Tx, network: string, most: number): Promise<SettlementRow[]> {
  return tx.many(
    SettlementRow,
    sql`
    select ${columns} from payments
    where network = ${network} and status = 'settling' and chain_transaction_id is null and not unresolved
    order by settling_at limit ${most} for update skip locked`,
  )
}

/** How many wait on a network and since when, without locking them. */
export function countWaiting(db: Queryable, network: string): Promise<{ waiting: bigint; oldest: Date | null }> {
  return db.one(
    WaitingRow,
    sql`
    select count(*) as waiting, min(settling_at) as oldest from payments
    where network = ${network} and status = 'settling' and chain_transaction_id is null and not unresolved`,
  )
}

export async function assignTransaction(
  tx: Tx,
  paymentIds: readonly PaymentId[],
  transactionId: string,
): Promise<void> {
  await tx.run(sql`
    update payments set chain_transaction_id = ${transactionId}, settle_attempt = settle_attempt + 1 where id = any(${paymentIds}::text[])`)
}

export function listInTransaction(tx: Queryable, transactionId: string): Promise<SettlementRow[]> {
  return tx.many(
    SettlementRow,
    sql`select ${columns} from payments where chain_transaction_id = ${transactionId} and status = 'settling' order by id`,
  )
}

export async function markHash(db: Queryable, transactionId: string, txHash: string): Promise<void> {
  await db.run(
    sql`update payments set tx_hash = ${txHash} where chain_transaction_id = ${transactionId} and status = 'settling'`,
  )
}

/** Forgets the hash of a transaction that is in a block and did not move these payments' money. */
export async function forgetHash(tx: Tx, paymentIds: readonly PaymentId[]): Promise<void> {
  await tx.run(sql`update payments set tx_hash = null where id = any(${paymentIds}::text[]) and status = 'settling'`)
}

/** Answers the ids that moved, so that the event is written once. */
export async function markSettled(
  db: Queryable,
  paymentIds: readonly PaymentId[],
  txHash: string | null,
  settledAt: Date,
): Promise<ReadonlySet<string>> {
  const rows = await db.many(
    IdRow,
    sql`
    update payments set status = 'settled', tx_hash = ${txHash}, settled_at = ${settledAt}, unresolved = false, failure_reason = null
    where id = any(${paymentIds}::text[]) and status in ('verified', 'settling') returning id`,
  )
  return new Set(rows.map((row) => row.id))
}

/** Their transaction is over without them, so its hash says nothing of them any more. */
export async function markUnresolved(tx: Tx, paymentIds: readonly PaymentId[]): Promise<void> {
  await tx.run(
    sql`update payments set unresolved = true, tx_hash = null where id = any(${paymentIds}::text[]) and status = 'settling'`,
  )
}

/** Lets an unresolved payment be sent again: its authorisation is still good and unused. */
export async function markWaitingAgain(db: Queryable, paymentId: PaymentId): Promise<void> {
  await db.run(sql`
    update payments set unresolved = false, chain_transaction_id = null, tx_hash = null where id = ${paymentId} and status = 'settling' and unresolved`)
}

export function markEnded(
  tx: Tx,
  paymentId: PaymentId,
  status: 'settlement_failed' | 'voided',
  reason: string,
): Promise<number> {
  return tx.run(sql`
    update payments set status = ${status}, failure_reason = ${reason}, unresolved = false, tx_hash = null
    where id = ${paymentId} and status in ('verified', 'settling')`)
}

/** Payments whose transaction is final without them: the chain must say what became of each. */
export function listUnresolved(db: Queryable, network: string, most: number): Promise<SettlementRow[]> {
  return db.many(
    SettlementRow,
    sql`
    select ${columns} from payments where network = ${network} and status = 'settling' and unresolved order by settling_at limit ${most}`,
  )
}

/** Payments never asked to settle, and those asked but not yet sent, whose authorisation has lapsed. */
export function listLapsed(db: Queryable, network: string, before: Date, most: number): Promise<SettlementRow[]> {
  return db.many(
    SettlementRow,
    sql`
    select ${columns} from payments
    where network = ${network} and valid_before < ${before} and settlement is not null
      and (status = 'verified' or (status = 'settling' and chain_transaction_id is null and not unresolved))
    order by valid_before limit ${most}`,
  )
}

export const Outcome = z.object({
  id: id('pay'),
  status: z.enum(['verified', 'settling', 'settled', 'settlement_failed', 'voided']),
  txHash: z.string().nullable(),
  settledAt: z.date().nullable(),
  failureReason: z.string().nullable(),
  /** The lane's transaction is in a block; false for a payer's own transaction, which no lane sends. */
  inBlock: z.boolean(),
})
export type Outcome = z.output<typeof Outcome>

/** Asks the lane's own table as well: only it knows whether what was sent is in a block. */
export function listOutcomes(db: Queryable, paymentIds: readonly PaymentId[]): Promise<Outcome[]> {
  return db.many(
    Outcome,
    sql`
    select payments.id, payments.status, tx_hash, settled_at, failure_reason, coalesce(sent.status in ('mined', 'final'), false) as in_block
    from payments left join chain_transactions sent on sent.id = chain_transaction_id
    where payments.id = any(${paymentIds}::text[])`,
  )
}

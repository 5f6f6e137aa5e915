import type { Address, Hex } from '@purser/protocol'
import { bytesToHex, hexToBytes } from '@purser/protocol'
import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../platform/db/db.ts'
import { id } from '../platform/ids.ts'
import type { ChainTransactionId, PlannedTransaction, Receipt } from './port.ts'

const Amount = z.string().transform((text) => BigInt(text))
const Bytes = z.instanceof(Uint8Array).transform((bytes) => bytesToHex(bytes))
const HexText = z.templateLiteral(['0x', z.string()])

export const TransactionRow = z.object({
  id: id('ctx'),
  nonce: z.bigint(),
  toAddress: HexText,
  value: Amount,
  gasLimit: Amount,
  purpose: z.string(),
  status: z.enum(['planned', 'sent', 'mined', 'final']),
  minedHash: HexText.nullable(),
  minedBlock: z.bigint().nullable(),
  lastBroadcastAt: z.date().nullable(),
  createdAt: z.date(),
})
export type TransactionRow = z.output<typeof TransactionRow>

export const AttemptRow = z.object({
  transactionId: id('ctx'),
  sequence: z.number(),
  hash: HexText,
  maxFee: Amount,
  priorityFee: Amount,
  createdAt: z.date(),
})
export type AttemptRow = z.output<typeof AttemptRow>

export interface LaneKey {
  readonly network: string
  readonly sender: Address
}

/** Without the call data, which is large and only needed to sign. */
const columns = sql`id, nonce, to_address, value, gas_limit, purpose, status, mined_hash, mined_block, last_broadcast_at, created_at`

/** The nonce that the lane gives next; undefined while it has not begun. */
export async function findNextNonce(db: Queryable, lane: LaneKey): Promise<bigint | undefined> {
  const row = await db.maybeOne(
    z.object({ nextNonce: z.bigint() }),
    sql`
    select next_nonce from lanes where network = ${lane.network} and sender = ${lane.sender}`,
  )
  return row?.nextNonce
}

/** Makes the lane begin at the chain's nonce; a lane that is there keeps its own count. */
export async function insertLane(db: Queryable, lane: LaneKey, firstNonce: bigint): Promise<void> {
  await db.run(
    sql`insert into lanes (network, sender, next_nonce) values (${lane.network}, ${lane.sender}, ${firstNonce}) on conflict do nothing`,
  )
}

/** Takes the lane's next nonce under its row lock: two transactions never share one, and none is skipped. */
export async function takeNonce(tx: Tx, lane: LaneKey): Promise<bigint> {
  const row = await tx.one(
    z.object({ nonce: z.bigint() }),
    sql`
    update lanes set next_nonce = next_nonce + 1 where network = ${lane.network} and sender = ${lane.sender} returning next_nonce - 1 as nonce`,
  )
  return row.nonce
}

export async function insertTransaction(
  tx: Tx,
  lane: LaneKey,
  made: { readonly id: ChainTransactionId; readonly nonce: bigint; readonly createdAt: Date },
  planned: PlannedTransaction,
): Promise<void> {
  await tx.run(sql`
    insert into chain_transactions (id, network, sender, nonce, to_address, data, value, gas_limit, purpose, status, created_at)
    values (${made.id}, ${lane.network}, ${lane.sender}, ${made.nonce}, ${planned.to}, ${hexToBytes(planned.data)}, ${planned.value.toString()},
      ${planned.gasLimit.toString()}, ${planned.purpose}, 'planned', ${made.createdAt})`)
}

/** All transactions of a lane that are not final, in nonce order. */
export function listOpen(db: Queryable, lane: LaneKey): Promise<TransactionRow[]> {
  return db.many(
    TransactionRow,
    sql`
    select ${columns} from chain_transactions where network = ${lane.network} and sender = ${lane.sender} and status <> 'final' order by nonce limit 200`,
  )
}

/** Accounts other than this one that have transactions which are not final, in any order. */
export async function listOpenSenders(db: Queryable, network: string, except: Address): Promise<Address[]> {
  const rows = await db.many(
    z.object({ sender: HexText }),
    sql`
    select distinct sender from chain_transactions where network = ${network} and sender <> ${except} and status <> 'final'`,
  )
  return rows.map(({ sender }) => sender)
}

export function lockTransaction(tx: Tx, transactionId: ChainTransactionId): Promise<TransactionRow> {
  return tx.one(TransactionRow, sql`select ${columns} from chain_transactions where id = ${transactionId} for update`)
}

export async function countUnmined(db: Queryable, lane: LaneKey): Promise<number> {
  const row = await db.one(
    z.object({ count: z.bigint() }),
    sql`
    select count(*) as count from chain_transactions where network = ${lane.network} and sender = ${lane.sender} and status in ('planned', 'sent')`,
  )
  return Number(row.count)
}

const DataRow = z.object({ id: id('ctx'), data: Bytes })
const RawRow = z.object({ transactionId: id('ctx'), raw: Bytes })

/** What transactions call, for signing them. */
export async function listCallData(
  db: Queryable,
  transactionIds: readonly ChainTransactionId[],
): Promise<ReadonlyMap<string, Hex>> {
  const rows = await db.many(
    DataRow,
    sql`select id, data from chain_transactions where id = any(${transactionIds}::text[])`,
  )
  return new Map(rows.map(({ id, data }) => [id, data]))
}

/** The newest signed bytes of each of these transactions. */
export async function listLatestRaw(
  db: Queryable,
  transactionIds: readonly ChainTransactionId[],
): Promise<ReadonlyMap<string, Hex>> {
  const rows = await db.many(
    RawRow,
    sql`
    select distinct on (transaction_id) transaction_id, raw from transaction_attempts
    where transaction_id = any(${transactionIds}::text[]) order by transaction_id, sequence desc`,
  )
  return new Map(rows.map((row) => [row.transactionId, row.raw]))
}

export function listAttempts(db: Queryable, transactionIds: readonly ChainTransactionId[]): Promise<AttemptRow[]> {
  return db.many(
    AttemptRow,
    sql`
    select transaction_id, sequence, hash, max_fee, priority_fee, created_at from transaction_attempts
    where transaction_id = any(${transactionIds}::text[]) order by transaction_id, sequence`,
  )
}

/** Stores signed bytes before anybody sends them; from here on the transactions may be anywhere. */
export async function insertAttempts(
  tx: Tx,
  lane: LaneKey,
  attempts: readonly (AttemptRow & { readonly raw: Hex })[],
): Promise<void> {
  const ids = attempts.map(({ transactionId }) => transactionId)
  await tx.run(sql`
    insert into transaction_attempts (transaction_id, sequence, network, hash, raw, max_fee, priority_fee, created_at)
    select id, sequence, ${lane.network}, hash, decode(raw, 'hex'), max_fee, priority_fee, created_at from unnest(
      ${ids}::text[], ${attempts.map(({ sequence }) => sequence)}::integer[], ${attempts.map(({ hash }) => hash)}::text[],
      ${attempts.map(({ raw }) => raw.slice(2))}::text[], ${attempts.map(({ maxFee }) => maxFee.toString())}::numeric[],
      ${attempts.map(({ priorityFee }) => priorityFee.toString())}::numeric[],
      ${attempts.map(({ createdAt }) => createdAt.toISOString())}::timestamptz[]
    ) as made (id, sequence, hash, raw, max_fee, priority_fee, created_at)`)
  await tx.run(sql`update chain_transactions set status = 'sent' where id = any(${ids}::text[]) and status = 'planned'`)
}

export async function markBroadcast(
  db: Queryable,
  transactionIds: readonly ChainTransactionId[],
  now: Date,
): Promise<void> {
  await db.run(sql`update chain_transactions set last_broadcast_at = ${now} where id = any(${transactionIds}::text[])`)
}

/** Forgets when bytes without an outcome were last sent, so that they are sent at once. */
export async function markUnsent(db: Queryable, lane: LaneKey): Promise<void> {
  await db.run(sql`
    update chain_transactions set last_broadcast_at = null
    where network = ${lane.network} and sender = ${lane.sender} and status = 'sent'`)
}

export async function markMined(tx: Tx, transactionId: ChainTransactionId, receipt: Receipt): Promise<void> {
  await tx.run(sql`
    update chain_transactions set status = 'mined', mined_hash = ${receipt.transactionHash}, mined_block = ${receipt.blockNumber},
      gas_used = ${receipt.gasUsed.toString()}, effective_gas_price = ${receipt.effectiveGasPrice.toString()}
    where id = ${transactionId} and status in ('sent', 'mined')`)
}

/** Its block is gone: the same bytes are sent again. Answers how many rows that changed. */
export function markReorganised(tx: Tx, transactionId: ChainTransactionId): Promise<number> {
  return tx.run(sql`
    update chain_transactions set status = 'sent', mined_hash = null, mined_block = null, last_broadcast_at = null
    where id = ${transactionId} and status = 'mined'`)
}

export async function markFinal(tx: Tx, transactionId: ChainTransactionId): Promise<void> {
  await tx.run(sql`update chain_transactions set status = 'final' where id = ${transactionId}`)
}

/** Signed bytes of final transactions at these nonces or above: for a chain that went back behind what was final. */
export function listFinalRaw(db: Queryable, lane: LaneKey, fromNonce: bigint): Promise<{ raw: Hex }[]> {
  return db.many(
    z.object({ raw: Bytes }),
    sql`
    select a.raw from chain_transactions t join transaction_attempts a on a.transaction_id = t.id and a.hash = t.mined_hash
    where t.network = ${lane.network} and t.sender = ${lane.sender} and t.status = 'final' and t.nonce >= ${fromNonce} order by t.nonce limit 200`,
  )
}

import type { Address, Hex } from '@purser/protocol'
import { bytesToHex, hexToBytes } from '@purser/protocol'
import { z } from 'zod'
import { StoredBigInt, StoredHex } from '../../platform/db/columns.ts'
import { anyLength, type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { onAnyOf } from '../../platform/db/on-any-of.ts'
import { failPlatform } from '../../platform/errors.ts'
import { id } from '../../platform/ids.ts'
import { isUnder, type LeaseSet } from '../../platform/leases/store.ts'
import type { Receipt } from '../port.ts'
import type { ChainTransactionId, LaneCall, OpenCounts, PlannedTransaction } from './port.ts'

export const Bytes = z.instanceof(Uint8Array).transform((bytes) => bytesToHex(bytes))

export interface LaneKey {
  readonly network: string
  readonly sender: Address
}

/** The database's generation. A lane must have it to plan. 0 before the database was first served. */
export const generation = sql`coalesce((select generation from witness_state), 0)`

export const LaneTransactionRow = z.object({
  id: id('ctx'),
  network: z.string(),
  sender: StoredHex,
  nonce: z.bigint(),
  toAddress: StoredHex.nullable(),
  value: StoredBigInt,
  gasLimit: StoredBigInt,
  dataBytes: z.number(),
  feeToken: StoredHex.nullable(),
  isSponsored: z.boolean(),
  purpose: z.string(),
  status: z.enum(['planned', 'sent', 'mined', 'final']),
  minedHash: StoredHex.nullable(),
  minedBlock: z.bigint().nullable(),
  lastBroadcastAt: z.date().nullable(),
  createdAt: z.date(),
})
export type LaneTransactionRow = z.output<typeof LaneTransactionRow>

export const AttemptRow = z.object({
  transactionId: id('ctx'),
  sequence: z.number(),
  hash: StoredHex,
  maxFee: StoredBigInt,
  priorityFee: StoredBigInt,
  createdAt: z.date(),
})
export type AttemptRow = z.output<typeof AttemptRow>
/** A signed attempt and its bytes. */
export type SignedAttempt = AttemptRow & { readonly raw: Hex }

const CallsBefore = z.array(
  z.object({ to: StoredHex, data: StoredHex, value: StoredHex.transform((hex) => BigInt(hex)) }),
)

/** The call data of a transaction, and the calls that run before it. */
export interface CallData {
  readonly data: Hex
  readonly before: readonly LaneCall[]
}

/** The sender's shard, below `shardCount`. The index `chain_transactions_open_by_shard` uses the same expression. */
const shardOf = (sender: Sql): Sql => sql`((hashtextextended(${sender}, 0) & 7)::integer)`
export const shard = shardOf(sql`sender`)

/** Omits the call data, which is large and only needed to sign. */
const columns = sql`id, network, sender, nonce, to_address, value, gas_limit, octet_length(data) as data_bytes, fee_token, is_sponsored, purpose, status, mined_hash, mined_block, last_broadcast_at, created_at`

export interface NewTransaction {
  readonly id: ChainTransactionId
  readonly lane: LaneKey
  readonly nonce: bigint
  readonly createdAt: Date
  readonly planned: PlannedTransaction
}

/** Throws for Tempo-only fields on a network with a native coin: the transaction could never be signed and would block its lane. */
export async function insertTransactions(tx: Tx, made: readonly NewTransaction[]): Promise<void> {
  for (const { planned } of made) refuseUnsignable(planned)
  await tx.run(sql`
    insert into chain_transactions (id, network, sender, nonce, to_address, data, value, gas_limit, fee_token, calls_before, is_sponsored,
      travels_alone, purpose, status, created_at)
    select id, network, sender, nonce, to_address, data, value, gas_limit, fee_token, calls_before, is_sponsored, travels_alone, purpose, 'planned', created_at
    from unnest(
      ${made.map(({ id }) => id)}::text[], ${made.map(({ lane }) => lane.network)}::text[], ${made.map(({ lane }) => lane.sender)}::text[],
      ${made.map(({ nonce }) => nonce)}::bigint[], ${made.map(({ planned }) => planned.to)}::text[],
      ${made.map(({ planned }) => hexToBytes(planned.data))}::bytea[], ${made.map(({ planned }) => planned.value)}::numeric[],
      ${made.map(({ planned }) => planned.gasLimit)}::numeric[], ${made.map(({ planned }) => planned.feeToken ?? null)}::text[],
      ${made.map(({ planned }) => calledBefore(planned))}::jsonb[], ${made.map(({ planned }) => planned.isSponsored ?? false)}::boolean[],
      ${made.map(({ planned }) => planned.slot === 'single')}::boolean[],
      ${made.map(({ planned }) => planned.purpose)}::text[], ${made.map(({ createdAt }) => createdAt.toISOString())}::timestamptz[]
    ) as given (id, network, sender, nonce, to_address, data, value, gas_limit, fee_token, calls_before, is_sponsored, travels_alone, purpose, created_at)`)
}

function refuseUnsignable({ network, to, feeToken, callsBefore = [], isSponsored = false }: PlannedTransaction): void {
  if (network.nativeCoin !== null && (feeToken !== undefined || callsBefore.length > 0 || isSponsored))
    throw new Error(`${network.name} supports one call per transaction and fees in its native coin only`)
  if (network.nativeCoin === null && to === null) throw new Error(`${network.name} sends calls only`)
}

function calledBefore({ callsBefore = [] }: PlannedTransaction): string | null {
  return callsBefore.length === 0 ? null : JSON.stringify(callsBefore.map(hexadecimal))
}

function hexadecimal({ to, data, value }: LaneCall) {
  return { to, data, value: `0x${value.toString(16)}` }
}

/** The transactions of these accounts that are not final, in nonce order, at most `aheadMax` per account. */
export function listOpen(db: Queryable, network: string, senders: readonly Address[]): Promise<LaneTransactionRow[]> {
  return db.many(
    LaneTransactionRow,
    sql`
    select own.* from unnest(${anyLength(senders)}) as account cross join lateral (
      select ${columns} from chain_transactions where network = ${network} and sender = account and status <> 'final' order by nonce limit ${aheadMax}
    ) as own`,
  )
}

const UnsentRow = LaneTransactionRow.extend({ data: Bytes.nullable(), callsBefore: CallsBefore.nullable() })

/** A transaction that is not sent yet, with its call data when it is not signed yet. */
export interface Unsent {
  readonly transaction: LaneTransactionRow
  readonly called: CallData | undefined
}

/** Most nonces, from its lowest open one on, that a lane sends. Nodes limit the pending transactions of an account. */
const aheadMax = 200

/**
 * Up to `most` transactions of these accounts that must be signed or sent: the lowest nonces of each account, in nonce order, shared evenly between
 * accounts.
 */
export async function listUnsent(
  db: Queryable,
  network: string,
  senders: readonly Address[],
  most: number,
): Promise<Unsent[]> {
  const rows = await db.many(
    UnsentRow,
    sql`
    select own.* from unnest(${anyLength(senders)}) as account cross join lateral (
      select ${columns}, case when status = 'planned' then data end as data, calls_before, row_number() over (order by nonce) as turn
      from chain_transactions
      where network = ${network} and sender = account and (status = 'planned' or (status = 'sent' and last_broadcast_at is null))
        and nonce < ${aheadMax} + (select min(nonce) from chain_transactions where network = ${network} and sender = account and status <> 'final')
      order by nonce limit ${most}
    ) as own order by turn limit ${most}`,
  )
  return rows.map(({ data, callsBefore, ...transaction }) => {
    return { transaction, called: data === null ? undefined : { data, before: callsBefore ?? [] } }
  })
}

const OpenSender = z.object({ sender: StoredHex, shard: z.number(), hasUnsent: z.boolean(), count: z.bigint() })
export type OpenSender = z.output<typeof OpenSender>

/** Accounts of the leased shards with transactions that are not final: how many, and whether any is unsent. In no particular order. */
export function listOpenSenders(db: Queryable, network: string, { leases }: LeaseSet): Promise<OpenSender[]> {
  return db.many(
    OpenSender,
    sql`
    select sender, ${shard} as shard, bool_or(status = 'planned' or (status = 'sent' and last_broadcast_at is null)) as has_unsent, count(*) as count
    from chain_transactions where network = ${network} and ${shard} = any(${anyLength(
      leases.map((lease) => lease.shard),
      sql`integer`,
    )}) and status <> 'final' group by sender`,
  )
}

/** Those of the networks whose leased shards have any transaction that is not final. */
export async function listOpenNetworks(
  db: Queryable,
  leased: readonly { readonly network: string; readonly shard: number }[],
): Promise<ReadonlySet<string>> {
  const rows = await db.many(
    z.object({ network: z.string() }),
    sql`
    select distinct network from unnest(${anyLength(leased.map(({ network }) => network))}, ${anyLength(
      leased.map((one) => one.shard),
      sql`integer`,
    )}) as leased (network, shard)
    where exists (select from chain_transactions c where c.network = leased.network and ${shardOf(sql`c.sender`)} = leased.shard and c.status <> 'final')`,
  )
  return new Set(rows.map(({ network }) => network))
}

/** The transaction, locked until the database transaction ends; undefined when another process leases its shard. */
export function lockTransaction(
  tx: Tx,
  leased: LeaseSet,
  transactionId: ChainTransactionId,
): Promise<LaneTransactionRow | undefined> {
  return tx.maybeOne(
    LaneTransactionRow,
    sql`select ${columns} from chain_transactions where id = ${transactionId} and ${isUnder(leased, shard)} for update`,
  )
}

export async function countOpen(db: Queryable, lane: LaneKey): Promise<OpenCounts> {
  const row = await db.one(
    z.object({ batch: z.bigint(), single: z.bigint() }),
    sql`
    select count(*) filter (where not travels_alone) as batch, count(*) filter (where travels_alone) as single
    from chain_transactions where network = ${lane.network} and sender = ${lane.sender} and status in ('planned', 'sent')`,
  )
  return { batch: Number(row.batch), single: Number(row.single) }
}

const DataRow = z.object({ data: Bytes, callsBefore: CallsBefore.nullable() })

/** A transaction's call data, for signing it again. */
export async function findCallData(db: Queryable, transactionId: ChainTransactionId): Promise<CallData> {
  const { data, callsBefore } = await db.one(
    DataRow,
    sql`select data, calls_before from chain_transactions where id = ${transactionId}`,
  )
  return { data, before: callsBefore ?? [] }
}

export function listAttempts(db: Queryable, transactionIds: readonly ChainTransactionId[]): Promise<AttemptRow[]> {
  return db.many(
    AttemptRow,
    sql`
    select transaction_id, sequence, hash, max_fee, priority_fee, created_at from transaction_attempts
    where transaction_id = any(${anyLength(transactionIds)}) order by transaction_id, sequence`,
  )
}

/** Thrown when a lease ended before its work was stored. Another process may be doing that work. */
class LeaseLost extends Error {}

/**
 * Stores signed bytes before they are sent; after this the transactions may be on the network. Stores all or none: throws `LeaseLost` when another
 * process leases a shard. First attempts are marked as sent now, because the caller sends them next. If it crashes before, the process that resumes
 * the lane sends everything again.
 */
export async function insertAttempts(tx: Tx, leased: LeaseSet, attempts: readonly SignedAttempt[]): Promise<void> {
  const ids = attempts.map(({ transactionId }) => transactionId)
  const { count } = await tx.one(
    z.object({ count: z.bigint() }),
    sql`
    with leased as (
      select id, network from chain_transactions where id = any(${ids}::text[]) and status <> 'final' and ${isUnder(leased, shard)}
    ), signed as (
      insert into transaction_attempts (transaction_id, sequence, network, hash, raw, max_fee, priority_fee, created_at)
      select id, sequence, network, hash, decode(raw, 'hex'), max_fee, priority_fee, created_at from unnest(
        ${ids}::text[], ${attempts.map(({ sequence }) => sequence)}::integer[], ${attempts.map(({ hash }) => hash)}::text[],
        ${attempts.map(({ raw }) => raw.slice(2))}::text[], ${attempts.map(({ maxFee }) => maxFee.toString())}::numeric[],
        ${attempts.map(({ priorityFee }) => priorityFee.toString())}::numeric[],
        ${attempts.map(({ createdAt }) => createdAt.toISOString())}::timestamptz[]
      ) as made (id, sequence, hash, raw, max_fee, priority_fee, created_at) join leased using (id)
      returning transaction_id, created_at
    ), marked as (
      update chain_transactions t set status = 'sent', last_broadcast_at = s.created_at from signed s
      where t.id = s.transaction_id and t.status = 'planned'
    )
    select count(*) as count from signed`,
  )
  if (Number(count) !== attempts.length) throw new LeaseLost('the lease ended before the signed bytes were stored')
}

/** Records when these were sent. Throws `LeaseLost` when another process leases a shard; otherwise the caller would send the same bytes forever. */
export async function markBroadcast(
  db: Queryable,
  leased: LeaseSet,
  broadcast: { readonly ids: readonly ChainTransactionId[]; readonly at: Date },
): Promise<void> {
  const marked = await db.run(sql`
    update chain_transactions set last_broadcast_at = ${broadcast.at} where id = any(${broadcast.ids}::text[]) and ${isUnder(leased, shard)}`)
  if (marked < broadcast.ids.length) throw new LeaseLost('the lease ended before the broadcast was recorded')
}

/** Clears the broadcast time of these accounts' unmined transactions, so that they are sent at once. */
export async function markUnsent(
  db: Queryable,
  leased: LeaseSet,
  network: string,
  senders: readonly Address[],
): Promise<void> {
  await db.run(sql`
    update chain_transactions set last_broadcast_at = null
    where network = ${network} and sender = any(${senders}::text[]) and status = 'sent' and last_broadcast_at is not null and ${isUnder(leased, shard)}`)
}

const PlaceRow = z.object({ sender: StoredHex, lowest: z.bigint() })

/** The lowest nonce of each account that is not final yet; its next nonce when nothing is open. */
export function listLowestOpen(
  db: Queryable,
  network: string,
  senders: readonly Address[],
): Promise<z.output<typeof PlaceRow>[]> {
  return db.many(
    PlaceRow,
    sql`
    select sender, coalesce(
      (select min(nonce) from chain_transactions t where t.network = lanes.network and t.sender = lanes.sender and t.status <> 'final'), next_nonce) as lowest
    from lanes where network = ${network} and sender = any(${senders}::text[])`,
  )
}

/** A transaction's receipt, and whether it is final. */
export interface MinedReceipt {
  readonly id: ChainTransactionId
  readonly receipt: Receipt
  readonly isFinal: boolean
}

/**
 * Stores the receipts of mined transactions that are not final and whose shards are leased. Locks them in nonce order. Returns them in that order,
 * as they were before.
 */
export function markMined(tx: Tx, leased: LeaseSet, mined: readonly MinedReceipt[]): Promise<LaneTransactionRow[]> {
  const ids = mined.map(({ id }) => id)
  return tx.many(
    LaneTransactionRow,
    sql`
    with locked as (
      select ${columns} from chain_transactions where id = any(${ids}::text[]) and status in ('sent', 'mined') and ${isUnder(leased, shard)}
      order by sender, nonce for update
    ), marked as (
      update chain_transactions t set status = case when m.final then 'final' else 'mined' end, final_at = case when m.final then now() end,
        mined_hash = m.hash, mined_block = m.block, gas_used = m.gas, effective_gas_price = m.price
      from locked, unnest(
        ${ids}::text[], ${mined.map(({ receipt }) => receipt.transactionHash)}::text[],
        ${mined.map(({ receipt }) => receipt.blockNumber)}::bigint[], ${mined.map(({ receipt }) => receipt.gasUsed)}::numeric[],
        ${mined.map(({ receipt }) => receipt.effectiveGasPrice)}::numeric[], ${mined.map(({ isFinal }) => isFinal)}::boolean[]
      ) as m (id, hash, block, gas, price, final)
      where t.id = locked.id and m.id = locked.id
    )
    select * from locked order by sender, nonce`,
  )
}

/** The lane's next nonce; undefined when the lane does not exist yet. */
export async function findNextNonce(db: Queryable, lane: LaneKey): Promise<bigint | undefined> {
  const row = await db.maybeOne(
    z.object({ nextNonce: z.bigint() }),
    sql`
    select next_nonce from lanes where network = ${lane.network} and sender = ${lane.sender}`,
  )
  return row?.nextNonce
}

/** Creates the lane at the chain's nonce. An existing lane keeps its nonce. */
export async function insertLane(db: Queryable, lane: LaneKey, firstNonce: bigint): Promise<void> {
  await db.run(
    sql`insert into lanes (network, sender, next_nonce, generation) values (${lane.network}, ${lane.sender}, ${firstNonce}, ${generation}) on conflict do nothing`,
  )
}

/** Longest time that a database transaction with a nonce may be idle, so that a crashed planner does not block its lane for longer. */
const idleMsMax = 4_000

const Taken = z.object({ network: z.string(), sender: StoredHex, firstNonce: z.bigint(), isCompared: z.boolean() })

/**
 * Takes the next `count` nonces of each lane under its row lock, so that no nonce is shared or skipped. Lanes are locked in a fixed order to
 * prevent deadlocks. Sets a short idle timeout for the caller's transaction. Returns the first nonce of each lane. Throws `service-unavailable`
 * when a lane was not compared with the chain since the last restore.
 */
export async function takeNonces(
  tx: Tx,
  wanted: readonly { readonly lane: LaneKey; readonly count: number }[],
): Promise<z.output<typeof Taken>[]> {
  const taken = await tx.many(
    Taken,
    sql`
    with wanted as (
      select * from unnest(${wanted.map(({ lane }) => lane.network)}::text[], ${wanted.map(({ lane }) => lane.sender)}::text[],
        ${wanted.map(({ count }) => count)}::integer[]) as given (network, sender, count)
    ), locked as (
      select l.network, l.sender, w.count from lanes l join wanted w using (network, sender) order by l.network, l.sender for update of l
    )
    update lanes l set next_nonce = l.next_nonce + h.count from locked h where l.network = h.network and l.sender = h.sender
    returning l.network, l.sender, l.next_nonce - h.count as first_nonce, l.generation >= ${generation} as is_compared,
      set_config('idle_in_transaction_session_timeout', ${String(idleMsMax)}, true)`,
  )
  if (taken.some(({ isCompared }) => !isCompared))
    throw failPlatform(
      'service-unavailable',
      {},
      new Error('a lane is still being compared with the chain after a restore'),
    )
  return taken
}

/** A condition: whether any transaction on the networks is not final. */
export function isAnyOpen(networks: readonly string[]): Sql {
  return onAnyOf(
    networks,
    sql`select c.nonce from chain_transactions c where c.network = n.network and c.status <> 'final' order by c.sender, c.nonce limit 1`,
  )
}

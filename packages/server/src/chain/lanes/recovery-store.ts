import type { Address, Hex } from '@purser/protocol'
import { z } from 'zod'
import { StoredBigInt, StoredHex } from '../../platform/db/columns.ts'
import { anyLength, type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { onAnyOf } from '../../platform/db/on-any-of.ts'
import { id } from '../../platform/ids.ts'
import { isUnder, type LeaseSet } from '../../platform/leases/store.ts'
import type { ChainTransactionId } from './port.ts'
import { type AttemptRow, Bytes, generation, type LaneKey, shard } from './store.ts'

/** A condition: whether a lane on these networks has not been compared with the chain since the last restore. */
export function isAnyUncompared(networks: readonly string[]): Sql {
  return onAnyOf(
    networks,
    sql`select l.sender from lanes l where l.network = n.network and l.generation < ${generation} order by l.generation, l.sender limit 1`,
  )
}

/** Accounts whose lanes were not compared with the chain since the last restore, ordered by address, starting after `page.after`. */
export async function listUncompared(
  db: Queryable,
  network: string,
  page: { readonly after: string; readonly limit: number },
): Promise<Address[]> {
  const rows = await db.many(
    z.object({ sender: StoredHex }),
    sql`
    select sender from lanes where network = ${network} and generation < ${generation} and sender > ${page.after}
    order by sender limit ${page.limit}`,
  )
  return rows.map(({ sender }) => sender)
}

const LaneNonces = z.object({
  nextNonce: z.bigint(),
  /** Every nonce below this one is final. */
  lowestOpen: z.bigint(),
  isFilling: z.boolean(),
})
export type LaneNonces = z.output<typeof LaneNonces>

/** The lane's nonces, locked until the transaction ends; undefined when the lane was already compared. */
export function lockUncompared(tx: Tx, { network, sender }: LaneKey, purpose: string): Promise<LaneNonces | undefined> {
  return tx.maybeOne(
    LaneNonces,
    sql`
    select next_nonce,
      coalesce((select min(nonce) from chain_transactions t where t.network = l.network and t.sender = l.sender and t.status <> 'final'), next_nonce) as lowest_open,
      exists (select from chain_transactions t
        where t.network = l.network and t.sender = l.sender and t.status <> 'final' and t.purpose = ${purpose}) as is_filling
    from lanes l where network = ${network} and sender = ${sender} and generation < ${generation} for update of l`,
  )
}

/** Marks the lane as compared, so that it can plan again. */
export async function markCompared(tx: Tx, { network, sender }: LaneKey): Promise<void> {
  await tx.run(sql`update lanes set generation = ${generation} where network = ${network} and sender = ${sender}`)
}

export async function moveNextNonce(tx: Tx, { network, sender }: LaneKey, nextNonce: bigint): Promise<void> {
  await tx.run(sql`update lanes set next_nonce = ${nextNonce} where network = ${network} and sender = ${sender}`)
}

/** Those of the hashes that the database has. */
export async function listKnownHashes(
  db: Queryable,
  network: string,
  hashes: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await db.many(
    z.object({ hash: StoredHex }),
    sql`select hash from transaction_attempts where network = ${network} and hash = any(${hashes}::text[])`,
  )
  return new Set(rows.map(({ hash }) => hash))
}

/** Stores an attempt that was found on chain, without its bytes. Returns false when another transaction already has the hash. */
export async function insertFoundAttempt(tx: Tx, latest: AttemptRow, hash: Hex): Promise<boolean> {
  const inserted = await tx.run(sql`
    insert into transaction_attempts (transaction_id, sequence, network, hash, raw, max_fee, priority_fee, created_at)
    select a.transaction_id, max(a.sequence) + 1, t.network, ${hash}, '\\x', ${latest.maxFee.toString()}::numeric, ${latest.priorityFee.toString()}::numeric,
      ${latest.createdAt}::timestamptz
    from transaction_attempts a join chain_transactions t on t.id = a.transaction_id where a.transaction_id = ${latest.transactionId}
    group by a.transaction_id, t.network on conflict (network, hash) do nothing`)
  return inserted === 1
}

/**
 * Returns a mined transaction to `sent` after its block was reorganized away, so that the same bytes are sent again. Returns the number of changed
 * rows.
 */
export function markReorganized(tx: Tx, leased: LeaseSet, transactionId: ChainTransactionId): Promise<number> {
  return tx.run(sql`
    update chain_transactions set status = 'sent', mined_hash = null, mined_block = null, last_broadcast_at = null
    where id = ${transactionId} and status = 'mined' and ${isUnder(leased, shard)}`)
}

/** Returns a final transaction to `sent` after its block was reorganized away. A replaced transaction has no block and stays final. */
export async function markReopened(tx: Tx, transactionId: ChainTransactionId): Promise<void> {
  await tx.run(sql`
    update chain_transactions set status = 'sent', mined_hash = null, mined_block = null, last_broadcast_at = null
    where id = ${transactionId} and status = 'final' and mined_hash is not null`)
}

/** Signed bytes of final transactions from this nonce on, for a chain that lost them. */
export function listFinalRaw(db: Queryable, lane: LaneKey, fromNonce: bigint): Promise<{ raw: Hex }[]> {
  return db.many(
    z.object({ raw: Bytes }),
    sql`
    select a.raw from chain_transactions t join transaction_attempts a on a.transaction_id = t.id and a.hash = t.mined_hash
    where t.network = ${lane.network} and t.sender = ${lane.sender} and t.status = 'final' and t.nonce >= ${fromNonce} and octet_length(a.raw) > 0
    order by t.nonce limit 200`,
  )
}

const RawRow = z.object({ transactionId: id('ctx'), raw: Bytes })

/** Number of the newest transactions that are searched for recent senders. */
const recentMax = 200

/** Accounts of the leased shards that sent any of the newest transactions, whatever their status. */
export async function listRecentSenders(db: Queryable, network: string, { leases }: LeaseSet): Promise<Address[]> {
  const rows = await db.many(
    z.object({ sender: StoredHex }),
    sql`
    select distinct sender from (select network, sender from chain_transactions order by id desc limit ${recentMax}) as recent
    where network = ${network} and ${shard} = any(${leases.map((lease) => lease.shard)}::integer[])`,
  )
  return rows.map(({ sender }) => sender)
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
    where transaction_id = any(${anyLength(transactionIds)}) and octet_length(raw) > 0 order by transaction_id, sequence desc`,
  )
  return new Map(rows.map((row) => [row.transactionId, row.raw]))
}

/** The signed bytes of a transaction's earlier attempts, newest first. */
export async function listEarlierRaw(db: Queryable, transactionId: ChainTransactionId, before: number): Promise<Hex[]> {
  const rows = await db.many(
    z.object({ raw: Bytes }),
    sql`
    select raw from transaction_attempts
    where transaction_id = ${transactionId} and sequence < ${before} and octet_length(raw) > 0 order by sequence desc limit 50`,
  )
  return rows.map(({ raw }) => raw)
}

/** The fees and signed bytes of a transaction's attempts, newest first. */
export function listSigned(db: Queryable, transactionId: ChainTransactionId): Promise<{ maxFee: bigint; raw: Hex }[]> {
  return db.many(
    z.object({ maxFee: StoredBigInt, raw: Bytes }),
    sql`
    select max_fee, raw from transaction_attempts
    where transaction_id = ${transactionId} and octet_length(raw) > 0 order by sequence desc limit 50`,
  )
}

/** Marks a transaction that can never be mined as final. */
export async function markFinal(tx: Tx, transactionId: ChainTransactionId): Promise<void> {
  await tx.run(sql`update chain_transactions set status = 'final', final_at = now() where id = ${transactionId}`)
}

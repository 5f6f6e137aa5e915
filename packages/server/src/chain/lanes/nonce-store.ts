import type { Hex } from '@purser/protocol'
import { z } from 'zod'
import { type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { onAnyOf } from '../../platform/db/due-checks.ts'
import { failPlatform } from '../../platform/errors.ts'
import { generation, type LaneKey } from './compare-store.ts'
import type { AttemptRow } from './store.ts'

const HexText = z.templateLiteral(['0x', z.string()])

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

const Taken = z.object({ network: z.string(), sender: HexText, firstNonce: z.bigint(), isCompared: z.boolean() })

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

/** Those of the hashes that the database has. */
export async function listKnownHashes(
  db: Queryable,
  network: string,
  hashes: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await db.many(
    z.object({ hash: HexText }),
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

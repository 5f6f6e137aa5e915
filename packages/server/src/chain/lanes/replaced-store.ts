import type { Hex } from '@purser/protocol'
import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import type { AttemptRow } from './store.ts'

const HexText = z.templateLiteral(['0x', z.string()])

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

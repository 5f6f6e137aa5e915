import { z } from 'zod'
import { type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { columns, type TransferId, TransferRow } from './store.ts'

/** A condition: whether any approval is due for a check. */
export function isAnyToRevoke(now: Date): Sql {
  return sql`(select revoke_at from transfers where revoke_at <= ${now} order by revoke_at limit 1) is not null`
}

/** Failed transfers whose approval is due for a check, longest due first. */
export function listToRevoke(db: Queryable, now: Date): Promise<TransferRow[]> {
  return db.many(
    TransferRow,
    sql`select ${columns} from transfers where revoke_at <= ${now} order by revoke_at limit 100`,
  )
}

/** Null if nothing remains to be revoked. */
export async function setRevokeAt(db: Queryable, transferId: TransferId, revokeAt: Date | null): Promise<void> {
  await db.run(sql`update transfers set revoke_at = ${revokeAt} where id = ${transferId} and revoke_at is not null`)
}

/** Locks the row; returns whether its approval still needs a check. */
export async function lockToRevoke(tx: Tx, transferId: TransferId): Promise<boolean> {
  const row = await tx.one(
    z.object({ isDue: z.boolean() }),
    sql`select revoke_at is not null as is_due from transfers where id = ${transferId} for update`,
  )
  return row.isDue
}

export async function countRevocations(db: Queryable, transferId: TransferId): Promise<number> {
  const { count } = await db.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from transfer_steps where transfer_id = ${transferId} and kind = 'revoke'`,
  )
  return Number(count)
}

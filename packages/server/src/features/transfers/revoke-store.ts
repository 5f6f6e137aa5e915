import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import { columns, type TransferId, TransferRow } from './store.ts'

/** Failed transfers whose approval is due to be looked at, longest due first. */
export function listToRevoke(db: Queryable, now: Date): Promise<TransferRow[]> {
  return db.many(
    TransferRow,
    sql`select ${columns} from transfers where revoke_at <= ${now} order by revoke_at limit 100`,
  )
}

/** Null where nothing is left to do. */
export async function setRevokeAt(db: Queryable, transferId: TransferId, revokeAt: Date | null): Promise<void> {
  await db.run(sql`update transfers set revoke_at = ${revokeAt} where id = ${transferId} and revoke_at is not null`)
}

/** Holds the row; whether its approval is still to be looked at. */
export async function lockToRevoke(tx: Tx, transferId: TransferId): Promise<boolean> {
  const row = await tx.one(
    z.object({ isDue: z.boolean() }),
    sql`select revoke_at is not null as is_due from transfers where id = ${transferId} for update`,
  )
  return row.isDue
}

/** What one account lets one contract take of one token. */
interface Allowed {
  readonly network: string
  readonly owner: string
  readonly token: string
  readonly spender: string
}

/** Whether a transfer under way may still have the contract take something out of the wallet, or what allows it is being taken back. */
export async function isApprovalBusy(db: Queryable, { network, owner, token, spender }: Allowed): Promise<boolean> {
  const row = await db.one(
    z.object({ is: z.boolean() }),
    sql`
    select exists (
      select from transfers t join transfer_steps s on s.transfer_id = t.id and s.kind = 'partner' and s.done_at is null
      where t.from_network = ${network} and t.from_address = ${owner} and t.ended_at is null and lower(s.to_address) = lower(${spender})
    ) or exists (
      select from transfers t join transfer_steps s on s.transfer_id = t.id and s.kind = 'revoke' and s.done_at is null
      where t.from_network = ${network} and t.from_address = ${owner} and t.revoke_at is not null and lower(s.to_address) = lower(${token})
    ) as is`,
  )
  return row.is
}

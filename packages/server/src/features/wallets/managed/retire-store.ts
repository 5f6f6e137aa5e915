import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { type Queryable, sql, type Tx } from '../../../platform/db/db.ts'
import { id, type MasterWalletId } from '../../../platform/ids.ts'
import { StoredAddress } from '../store.ts'
import type { MasterWalletRow } from './store.ts'

export const UsedChild = z.object({
  id: id('cad'),
  childIndex: z.bigint().transform(Number),
  address: StoredAddress,
})
export type UsedChild = z.output<typeof UsedChild>

/**
 * Whether anything still moves money of the wallet or of a child: an open transfer, or a reservation whose transaction or authorization has
 * not ended. Sweeps, withdrawals, top-ups and gas have reservations too.
 */
export async function hasOpenMovements(
  tx: Tx,
  tenant: Tenant,
  wallet: MasterWalletRow,
  network: string,
): Promise<boolean> {
  const { organisationId, environment } = tenant
  const children = sql`select id, address from child_addresses
    where organisation_id = ${organisationId} and environment = ${environment} and master_wallet_id = ${wallet.id}`
  const { has } = await tx.one(
    z.object({ has: z.boolean() }),
    sql`
    with own as materialized (select ${wallet.id}::text as id, ${wallet.address}::text as address union all ${children})
    select exists (
      select from reservations r join own on own.address = r.owner left join chain_transactions c on c.id = r.transaction_id
      where r.network = ${network} and r.ended_at is null and (c.id is null or c.status <> 'final')
    ) or exists (
      select from transfers t join own on own.address = t.from_address where t.from_network = ${network} and t.ended_at is null
    ) as has`,
  )
  return has
}

/** Children of a wallet that ever had a transaction, by index, after the index `after`. */
export function listUsedChildren(
  db: Queryable,
  tenant: Tenant,
  walletId: MasterWalletId,
  page: { readonly after: number; readonly limit: number },
): Promise<UsedChild[]> {
  const { organisationId, environment } = tenant
  return db.many(
    UsedChild,
    sql`
    select child.id, child.child_index, child.address from child_addresses as child
    where child.organisation_id = ${organisationId} and child.environment = ${environment}
      and child.master_wallet_id = ${walletId} and child.child_index > ${page.after}
      and exists (
        select from wallet_transactions
        where organisation_id = ${organisationId} and environment = ${environment} and wallet_id = child.id)
    order by child.child_index limit ${page.limit}`,
  )
}

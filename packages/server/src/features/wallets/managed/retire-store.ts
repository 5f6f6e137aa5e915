import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { type Queryable, sql } from '../../../platform/db/db.ts'
import { id, type MasterWalletId } from '../../../platform/ids.ts'
import { StoredAddress } from '../store.ts'

export const UsedChild = z.object({
  id: id('cad'),
  childIndex: z.bigint().transform(Number),
  address: StoredAddress,
})
export type UsedChild = z.output<typeof UsedChild>

/** Children of a wallet that ever had a transaction, by index, from above `after` on. */
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

import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { StoredHex } from '../../../platform/db/columns.ts'
import { type Queryable, sql } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'
import { LegacyCoin } from './coins.ts'

export const LegacyWalletRow = z.object({
  id: id('mwt'),
  address: StoredHex,
  /** The coin that it was created for. */
  coin: LegacyCoin,
  createdAt: z.date(),
})
export type LegacyWalletRow = z.output<typeof LegacyWalletRow>

export function findLegacyWallet(db: Queryable, tenant: Tenant): Promise<LegacyWalletRow | undefined> {
  return db.maybeOne(
    LegacyWalletRow,
    sql`
    select id, address, legacy_coin as coin, created_at from master_wallets
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and legacy_coin is not null`,
  )
}

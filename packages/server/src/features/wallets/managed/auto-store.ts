import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { type Queryable, sql, type Tx } from '../../../platform/db/db.ts'
import { id, type MasterWalletId } from '../../../platform/ids.ts'
import { AutoSweep } from './auto-sweep.ts'
import { MasterWalletRow, masterWalletColumns } from './store.ts'

/** A wallet that is to be swept by itself now; the operator's work spans tenants. */
export const DueWallet = MasterWalletRow.extend({
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  autoSweep: AutoSweep,
})
export type DueWallet = z.output<typeof DueWallet>

export function listDue(db: Queryable, now: Date, most: number): Promise<DueWallet[]> {
  return db.many(
    DueWallet,
    sql`
    select ${masterWalletColumns}, organisation_id, environment from master_wallets
    where auto_sweep is not null and retired_at is null and auto_sweep_due_at <= ${now} order by auto_sweep_due_at limit ${most}`,
  )
}

/** Says when a wallet is due again, unless its owner has changed his mind meanwhile. */
export async function markDue(db: Queryable, wallet: DueWallet, dueAt: Date): Promise<void> {
  await db.run(sql`
    update master_wallets set auto_sweep_due_at = ${dueAt}
    where organisation_id = ${wallet.organisationId} and environment = ${wallet.environment} and id = ${wallet.id}
      and auto_sweep = ${JSON.stringify(wallet.autoSweep)}::jsonb`)
}

/** Holds the wallet until the transaction ends. */
export function lockMasterWallet(
  tx: Tx,
  tenant: Tenant,
  walletId: MasterWalletId,
): Promise<MasterWalletRow | undefined> {
  return tx.maybeOne(
    MasterWalletRow,
    sql`
    select ${masterWalletColumns} from master_wallets
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${walletId}
      and legacy_coin is null
    for update`,
  )
}

/** Writes what its owner changes; the caller holds the wallet. */
export async function updateMasterWallet(
  tx: Tx,
  tenant: Tenant,
  wallet: Pick<MasterWalletRow, 'id' | 'name' | 'metadata' | 'autoSweep'> & { readonly dueAt: Date },
): Promise<void> {
  const { autoSweep, dueAt } = wallet
  await tx.run(sql`
    update master_wallets set name = ${wallet.name}, metadata = ${JSON.stringify(wallet.metadata)}::jsonb, auto_sweep = ${autoSweep === null ? null : JSON.stringify(autoSweep)}::jsonb,
      auto_sweep_due_at = ${autoSweep === null ? null : dueAt}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${wallet.id}`)
}

import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { id, type MasterWalletId } from '../../../platform/ids.ts'
import { AutoSweep } from './auto-sweep.ts'
import { MasterWalletRow, masterWalletColumns } from './store.ts'

/** A wallet whose automatic sweep is due, of any tenant. */
export const DueWallet = MasterWalletRow.extend({
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  autoSweep: AutoSweep,
})
export type DueWallet = z.output<typeof DueWallet>

/** A condition: whether the automatic sweep of any wallet is due. */
export function isAnySweepDue(now: Date): Sql {
  return sql`(select organisation_id from master_wallets
    where auto_sweep is not null and retired_at is null and auto_sweep_due_at <= ${now} order by auto_sweep_due_at limit 1) is not null`
}

export function listDue(db: Queryable, now: Date, most: number): Promise<DueWallet[]> {
  return db.many(
    DueWallet,
    sql`
    select ${masterWalletColumns}, organisation_id, environment from master_wallets
    where auto_sweep is not null and retired_at is null and auto_sweep_due_at <= ${now} order by auto_sweep_due_at limit ${most}`,
  )
}

/** Sets when a wallet is due next, unless its owner has changed the setting meanwhile. */
export async function markDue(db: Queryable, wallet: DueWallet, dueAt: Date): Promise<void> {
  await db.run(sql`
    update master_wallets set auto_sweep_due_at = ${dueAt}
    where organisation_id = ${wallet.organisationId} and environment = ${wallet.environment} and id = ${wallet.id}
      and auto_sweep = ${JSON.stringify(wallet.autoSweep)}::jsonb`)
}

/** Locks the wallet until the transaction ends. */
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

/** Updates the fields that its owner may change; the caller has locked the wallet. */
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

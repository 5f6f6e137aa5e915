import type { Network } from '@purser/protocol'
import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { StoredHex } from '../../../platform/db/columns.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { onAnyOf } from '../../../platform/db/on-any-of.ts'
import { id, type MasterWalletId } from '../../../platform/ids.ts'
import { type DueChecks, listDueChecks } from '../../plans/index.ts'
import { AutoSweep, MasterWalletRow, masterWalletColumns } from './store.ts'

/** A wallet whose automatic sweep is due, of any tenant; `isSuspended`: its organisation is. */
export const DueWallet = MasterWalletRow.extend({
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  autoSweep: AutoSweep,
  isSuspended: z.boolean(),
})
export type DueWallet = z.output<typeof DueWallet>

/** A condition: whether the automatic sweep of any wallet on one of the networks is due. */
export function isAnySweepDue(networks: readonly string[], now: Date): Sql {
  return onAnyOf(
    networks,
    sql`select organisation_id from master_wallets
      where network = n.network and auto_sweep is not null and retired_at is null and auto_sweep_due_at <= ${now} order by auto_sweep_due_at limit 1`,
  )
}

/** Wallets with automatic sweeps, as `listDueChecks` reads them. Migration 0247 indexes them. */
const sweptWallets = sql`(
  select id, organisation_id, network, auto_sweep_due_at as check_at from master_wallets where auto_sweep is not null and retired_at is null)`

/** Wallets of a network whose automatic sweep is due, in shares of their owners. The transaction must read in order. */
export async function listDue(
  tx: Tx,
  network: string,
  { now, ...due }: Pick<DueChecks, 'most' | 'cursors'> & { readonly now: Date },
): Promise<DueWallet[]> {
  const walletIds = await listDueChecks(tx, { table: sweptWallets, network, now: sql`${now}::timestamptz`, ...due })
  if (walletIds.length === 0) return []
  return tx.many(
    DueWallet,
    sql`
    select ${masterWalletColumns}, organisation_id, environment,
      (select suspended_at is not null from organisations where organisations.id = master_wallets.organisation_id) as is_suspended
    from master_wallets where id = any(${walletIds}::text[]) and auto_sweep is not null
    order by array_position(${walletIds}::text[], id)`,
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

export const UsedChild = z.object({
  id: id('cad'),
  childIndex: z.bigint().transform(Number),
  address: StoredHex,
})
export type UsedChild = z.output<typeof UsedChild>

/**
 * Whether anything still moves money of the wallet or of a child on one of the networks: an open transfer, or a reservation whose transaction or authorization has
 * not ended. Sweeps, withdrawals, top-ups and gas have reservations too.
 */
export async function hasOpenMovements(
  tx: Tx,
  tenant: Tenant,
  wallet: MasterWalletRow,
  networks: readonly Network[],
): Promise<boolean> {
  const { organisationId, environment } = tenant
  const names = sql`${networks.map(({ name }) => name)}::text[]`
  const children = sql`select id, address from child_addresses
    where organisation_id = ${organisationId} and environment = ${environment} and master_wallet_id = ${wallet.id}`
  const { has } = await tx.one(
    z.object({ has: z.boolean() }),
    sql`
    with own as materialized (select ${wallet.id}::text as id, ${wallet.address}::text as address union all ${children})
    select exists (
      select from reservations r join own on own.address = r.owner left join chain_transactions c on c.id = r.transaction_id
      where r.network = any(${names}) and r.ended_at is null and (c.id is null or c.status <> 'final')
    ) or exists (
      select from transfers t join own on own.address = t.from_address where t.from_network = any(${names}) and t.ended_at is null
    ) as has`,
  )
  return has
}

/** Children of a wallet that ever had a transaction on a network, by index, after the index `after`. */
export function listUsedChildren(
  db: Queryable,
  tenant: Tenant,
  walletId: MasterWalletId,
  page: { readonly network: string; readonly after: number; readonly limit: number },
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
        where organisation_id = ${organisationId} and environment = ${environment} and wallet_id = child.id and network = ${page.network})
    order by child.child_index limit ${page.limit}`,
  )
}

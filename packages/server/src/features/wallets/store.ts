import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { StoredHex } from '../../platform/db/columns.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { isBelow, type ListedRows, listRows } from '../../platform/db/page.ts'
import type { ByoWalletId } from '../../platform/ids.ts'
import { id } from '../../platform/ids.ts'
import { ChainName } from '../chains/index.ts'
import { AmlStatus } from './schema.ts'

export const ByoWalletRow = z.object({
  id: id('byw'),
  address: StoredHex,
  chain: ChainName,
  network: z.string(),
  name: z.string().nullable(),
  supportedTokens: z.array(z.string()),
  metadata: z.record(z.string(), z.unknown()),
  amlStatus: AmlStatus,
  createdAt: z.date(),
})
export type ByoWalletRow = z.output<typeof ByoWalletRow>

const columns = sql`id, address, chain, network, name, supported_tokens, metadata, aml_status, created_at`

/** Inserts the wallet; false if the address is already registered on that network, according to the unique index. */
export async function insertByoWallet(tx: Tx, tenant: Tenant, wallet: ByoWalletRow): Promise<boolean> {
  const { id, address, chain, network, name, supportedTokens, metadata, amlStatus, createdAt } = wallet
  const inserted = await tx.run(sql`
    insert into byo_wallets (id, organisation_id, environment, address, chain, network, name, supported_tokens, metadata, aml_status, aml_due_at, created_at)
    values (${id}, ${tenant.organisationId}, ${tenant.environment}, ${address}, ${chain}, ${network}, ${name}, ${supportedTokens},
      ${JSON.stringify(metadata)}, ${amlStatus}, ${createdAt}, ${createdAt})
    on conflict (organisation_id, environment, network, address) where deleted_at is null do nothing`)
  return inserted === 1
}

export function findByoWallet(db: Queryable, tenant: Tenant, walletId: ByoWalletId): Promise<ByoWalletRow | undefined> {
  return db.maybeOne(
    ByoWalletRow,
    sql`
    select ${columns} from byo_wallets
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${walletId} and deleted_at is null`,
  )
}

/** The wallet that has the address on that network. */
export function findByoWalletAt(
  tx: Tx,
  tenant: Tenant,
  { network, address }: Pick<ByoWalletRow, 'network' | 'address'>,
): Promise<ByoWalletRow | undefined> {
  return tx.maybeOne(
    ByoWalletRow,
    sql`
    select ${columns} from byo_wallets
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}
      and network = ${network} and address = ${address} and deleted_at is null`,
  )
}

/** Wallets, newest first, one more than the limit. */
export function listByoWallets(
  db: Queryable,
  tenant: Tenant,
  page: { readonly limit: number; readonly after: string | undefined },
): Promise<ListedRows<ByoWalletRow>> {
  return listRows(
    db,
    ByoWalletRow,
    page.limit,
    sql`
    select ${columns} from byo_wallets
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and deleted_at is null
      and ${isBelow(sql`id`, page.after)}
    order by id desc`,
  )
}

/** Locks the wallet's row until the transaction ends. */
export function lockByoWallet(tx: Tx, tenant: Tenant, walletId: ByoWalletId): Promise<ByoWalletRow | undefined> {
  return tx.maybeOne(
    ByoWalletRow,
    sql`
    select ${columns} from byo_wallets
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${walletId} and deleted_at is null
    for update`,
  )
}

/** Updates the fields that its owner may change; the caller has locked the wallet. */
export async function updateByoWallet(
  tx: Tx,
  tenant: Tenant,
  { id: walletId, name, metadata }: Pick<ByoWalletRow, 'id' | 'name' | 'metadata'>,
): Promise<void> {
  await tx.run(sql`
    update byo_wallets set name = ${name}, metadata = ${JSON.stringify(metadata)}::jsonb
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${walletId}`)
}

/** Deletes the wallet logically; false if there is none. The row stays, since payments refer to it. */
export async function markDeleted(tx: Tx, tenant: Tenant, walletId: ByoWalletId, deletedAt: Date): Promise<boolean> {
  const deleted = await tx.run(sql`
    update byo_wallets set deleted_at = ${deletedAt}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${walletId} and deleted_at is null`)
  return deleted === 1
}

/** Number of registered wallets, counted from the records. */
export function countingByoWallets(tenant: Tenant): Sql {
  return sql`
    select count(*) from byo_wallets
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and deleted_at is null`
}

/** A tenant's query for a wallet. */
export interface WalletQuestion {
  readonly tenant: Tenant
  readonly walletId: string
}

const OwnedRow = ByoWalletRow.extend({ organisationId: id('org'), environment: z.enum(['test', 'live']) })

/** The wallets of several queries in one statement; each is found only for its own tenant. */
export function listRequestedWallets(
  db: Queryable,
  questions: readonly WalletQuestion[],
): Promise<z.output<typeof OwnedRow>[]> {
  const organisationIds = questions.map(({ tenant }) => tenant.organisationId)
  const environments = questions.map(({ tenant }) => tenant.environment)
  const walletIds = questions.map(({ walletId }) => walletId)
  return db.many(
    OwnedRow,
    sql`
    select ${columns}, organisation_id, environment from byo_wallets
    where deleted_at is null and (organisation_id, environment, id) in
      (select * from unnest(${organisationIds}::text[], ${environments}::text[], ${walletIds}::text[]))`,
  )
}

/** A tenant's query for an account on a network; the address is EIP-55 checksummed. */
export interface PlaceQuestion {
  readonly tenant: Tenant
  readonly network: string
  readonly address: string
}

/** The wallets at several accounts in one statement; each is found only for its own tenant. */
export function listWalletsAt(
  db: Queryable,
  questions: readonly PlaceQuestion[],
): Promise<z.output<typeof OwnedRow>[]> {
  const organisationIds = questions.map(({ tenant }) => tenant.organisationId)
  const environments = questions.map(({ tenant }) => tenant.environment)
  const networks = questions.map(({ network }) => network)
  const addresses = questions.map(({ address }) => address)
  return db.many(
    OwnedRow,
    sql`
    select ${columns}, organisation_id, environment from byo_wallets
    where deleted_at is null and (organisation_id, environment, network, address) in
      (select * from unnest(${organisationIds}::text[], ${environments}::text[], ${networks}::text[], ${addresses}::text[]))`,
  )
}

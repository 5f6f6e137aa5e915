import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { StoredHex } from '../../../platform/db/columns.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { isBelow, type ListedRows, listRows } from '../../../platform/db/page.ts'
import { type ChildAddressId, id, type MasterWalletId } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import { ChainName } from '../../chains/index.ts'
import type { LegacyCoin } from '../legacy/coins.ts'
import type { PlaceQuestion, WalletQuestion } from '../store.ts'

/** A decimal amount of a token. The number of its digits is checked against the token's decimals. */
export const MinAmount = z
  .string()
  .regex(/^\d{1,60}(\.\d{1,60})?$/, 'must be a decimal amount such as "0.5"')
  .meta({ description: 'Children with a lower balance are skipped.', example: '0.5' })

export const TokenSymbol = z.string().min(1).max(32).meta({ example: 'USDC' })

/** The token of an automatic sweep, and how often the children are checked. */
export const AutoSweep = z.strictObject({
  token: TokenSymbol.describe('Symbol of the token that is swept.'),
  minAmount: MinAmount,
  everyMinutes: z.int().min(1).max(1_440).default(10).describe('Minutes between two checks of the children.'),
})
export type AutoSweep = z.output<typeof AutoSweep>

named({ AutoSweep })

const Bytes = z.instanceof(Uint8Array)

export const MasterWalletRow = z.object({
  id: id('mwt'),
  account: z.number(),
  address: StoredHex,
  chain: ChainName,
  network: z.string(),
  name: z.string().nullable(),
  supportedTokens: z.array(z.string()),
  keyVersion: z.number(),
  publicKey: Bytes,
  chainCode: Bytes,
  autoSweep: AutoSweep.nullable(),
  metadata: z.record(z.string(), z.unknown()),
  retiredAt: z.date().nullable(),
  createdAt: z.date(),
})
export type MasterWalletRow = z.output<typeof MasterWalletRow>

export const masterWalletColumns = sql`id, account, address, chain, network, name, supported_tokens, key_version, public_key, chain_code,
  auto_sweep, metadata, retired_at, created_at`

/** The account that the tenant's next wallet would use; another request may take it first. */
export async function findNextAccount(db: Queryable, tenant: Tenant): Promise<number> {
  const row = await db.maybeOne(
    z.object({ nextAccount: z.number() }),
    sql`
    select next_account from managed_wallet_accounts
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}`,
  )
  return row?.nextAccount ?? 0
}

/** Takes the tenant's next account until the transaction ends; a rollback returns it, so that none is skipped. */
export async function takeAccount(tx: Tx, tenant: Tenant): Promise<number> {
  const row = await tx.one(
    z.object({ account: z.number() }),
    sql`
    insert into managed_wallet_accounts (organisation_id, environment, next_account)
    values (${tenant.organisationId}, ${tenant.environment}, 1)
    on conflict (organisation_id, environment) do update set next_account = managed_wallet_accounts.next_account + 1
    returning next_account - 1 as account`,
  )
  return row.account
}

/** `legacyCoin` is set only for the legacy wallet: the coin that it is created for. */
export async function insertMasterWallet(
  tx: Tx,
  tenant: Tenant,
  wallet: MasterWalletRow & { readonly legacyCoin?: LegacyCoin },
): Promise<void> {
  await tx.run(sql`
    insert into master_wallets (id, organisation_id, environment, account, address, chain, network, name, supported_tokens, key_version,
      public_key, chain_code, legacy_coin, metadata, created_at)
    values (${wallet.id}, ${tenant.organisationId}, ${tenant.environment}, ${wallet.account}, ${wallet.address}, ${wallet.chain},
      ${wallet.network}, ${wallet.name}, ${wallet.supportedTokens}, ${wallet.keyVersion}, ${wallet.publicKey}, ${wallet.chainCode},
      ${wallet.legacyCoin ?? null}, ${JSON.stringify(wallet.metadata)}::jsonb, ${wallet.createdAt})`)
}

/** Excludes the legacy wallet, so that operations by wallet id do not apply to it. */
export function findMasterWallet(
  db: Queryable,
  tenant: Tenant,
  walletId: MasterWalletId,
): Promise<MasterWalletRow | undefined> {
  return db.maybeOne(
    MasterWalletRow,
    sql`
    select ${masterWalletColumns} from master_wallets
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${walletId}
      and legacy_coin is null`,
  )
}

/** Wallets, newest first, one more than the limit, without the legacy wallet; with a child address, only the wallet that has it. */
export function listMasterWallets(
  db: Queryable,
  tenant: Tenant,
  { childAddressId }: { readonly childAddressId?: ChildAddressId | undefined },
  page: { readonly limit: number; readonly after: string | undefined },
): Promise<ListedRows<MasterWalletRow>> {
  const isParent =
    childAddressId === undefined
      ? sql`true`
      : sql`id = (select master_wallet_id from child_addresses
          where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${childAddressId})`
  return listRows(
    db,
    MasterWalletRow,
    page.limit,
    sql`
    select ${masterWalletColumns} from master_wallets
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}
      and legacy_coin is null and ${isBelow(sql`id`, page.after)} and ${isParent}
    order by id desc`,
  )
}

/** Number of managed wallets, counted from the records; the legacy wallet and retired ones do not count against a quota. */
export function countingMasterWallets(tenant: Tenant): Sql {
  return sql`
    select count(*) from master_wallets
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and legacy_coin is null
      and retired_at is null`
}

/** The caller has locked the wallet's row. */
export async function markRetired(
  tx: Tx,
  tenant: Tenant,
  walletId: MasterWalletId,
  { at, hasFrozen }: { readonly at: Date; readonly hasFrozen: boolean },
): Promise<void> {
  await tx.run(sql`
    update master_wallets set retired_at = ${at}, retired_with_frozen = ${hasFrozen}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${walletId}`)
}

/** The caller has locked the wallet's row. */
export async function markRestored(tx: Tx, tenant: Tenant, walletId: MasterWalletId): Promise<void> {
  await tx.run(sql`
    update master_wallets set retired_at = null, retired_with_frozen = false
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${walletId}`)
}

/** A master wallet or a child of one, with the fields that a payment needs; a child accepts what its master accepts. */
export const ManagedReceiver = z.object({
  id: z.union([id('mwt'), id('cad')]),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  address: StoredHex,
  chain: ChainName,
  network: z.string(),
  supportedTokens: z.array(z.string()),
  retiredAt: z.date().nullable(),
})
export type ManagedReceiver = z.output<typeof ManagedReceiver>

const masters = sql`select id, organisation_id, environment, address, chain, network, supported_tokens, retired_at from master_wallets`
const children = sql`
  select c.id, c.organisation_id, c.environment, c.address, chain, network, supported_tokens, retired_at
  from child_addresses c join master_wallets m on m.id = master_wallet_id`

/** The managed wallets of several queries in one statement; each is found only for its own tenant. */
export function listRequestedManaged(db: Queryable, questions: readonly WalletQuestion[]): Promise<ManagedReceiver[]> {
  const requested = sql`select * from unnest(${questions.map(({ tenant }) => tenant.organisationId)}::text[],
    ${questions.map(({ tenant }) => tenant.environment)}::text[], ${questions.map(({ walletId }) => walletId)}::text[])`
  return db.many(
    ManagedReceiver,
    sql`
    ${masters} where (organisation_id, environment, id) in (${requested})
    union all ${children} where (c.organisation_id, c.environment, c.id) in (${requested})`,
  )
}

/** The managed wallets at several accounts in one statement; each is found only for its own tenant. */
export function listManagedAt(db: Queryable, places: readonly PlaceQuestion[]): Promise<ManagedReceiver[]> {
  const requested = sql`select * from unnest(${places.map(({ tenant }) => tenant.organisationId)}::text[],
    ${places.map(({ tenant }) => tenant.environment)}::text[], ${places.map(({ address }) => address)}::text[],
    ${places.map(({ network }) => network)}::text[])`
  return db.many(
    ManagedReceiver,
    sql`
    ${masters} where (organisation_id, environment, address, network) in (${requested})
    union all ${children} where (c.organisation_id, c.environment, c.address, network) in (${requested})`,
  )
}

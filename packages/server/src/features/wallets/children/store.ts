import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { StoredHex } from '../../../platform/db/columns.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { type ListedRows, listRows } from '../../../platform/db/page.ts'
import { type ChildAddressId, id, type MasterWalletId } from '../../../platform/ids.ts'
import { ChainName } from '../../chains/index.ts'

const Index = z.bigint().transform(Number)

export const ChildAddressRow = z.object({
  id: id('cad'),
  masterWalletId: id('mwt'),
  /** The hardened part of the path, equal to the master's. */
  account: z.number(),
  childIndex: Index,
  address: StoredHex,
  name: z.string().nullable(),
  metadata: z.record(z.string(), z.unknown()),
  createdAt: z.date(),
})
export type ChildAddressRow = z.output<typeof ChildAddressRow>

const columns = sql`c.id, master_wallet_id, account, child_index, c.address, c.name, c.metadata, c.created_at`

export const ParentRow = z.object({
  account: z.number(),
  chain: ChainName,
  network: z.string(),
  supportedTokens: z.array(z.string()),
  publicKey: z.instanceof(Uint8Array),
  chainCode: z.instanceof(Uint8Array),
  nextChild: Index,
  retiredAt: z.date().nullable(),
})
export type ParentRow = z.output<typeof ParentRow>

/** Locks the master's row, so that two requests never use the same index; undefined if the tenant has no such wallet. */
export function lockParent(tx: Tx, tenant: Tenant, walletId: MasterWalletId): Promise<ParentRow | undefined> {
  return tx.maybeOne(
    ParentRow,
    sql`
    select account, chain, network, supported_tokens, public_key, chain_code, next_child, retired_at from master_wallets
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${walletId}
      and legacy_coin is null
    for update`,
  )
}

/** The unused indices below the wallet's next index, in order: those that a restore skipped. */
export async function listPassedOver(tx: Tx, tenant: Tenant, walletId: MasterWalletId): Promise<number[]> {
  const rows = await tx.many(
    z.object({ childIndex: Index }),
    sql`
    select i as child_index from master_wallets m cross join generate_series(1::bigint, m.next_child - 1) as i
    where m.organisation_id = ${tenant.organisationId} and m.environment = ${tenant.environment} and m.id = ${walletId} and not exists (
      select from child_addresses c where c.master_wallet_id = m.id and c.child_index = i) order by i`,
  )
  return rows.map(({ childIndex }) => childIndex)
}

/** Sets the index of the next child; the caller has locked the master with `lockParent`. */
export async function markDerived(tx: Tx, tenant: Tenant, walletId: MasterWalletId, nextChild: number): Promise<void> {
  await tx.run(sql`
    update master_wallets set next_child = ${nextChild}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${walletId}`)
}

/** Inserts children that share all but id, index and address, in one statement. */
export async function insertChildAddresses(
  tx: Tx,
  tenant: Tenant,
  children: readonly ChildAddressRow[],
): Promise<void> {
  const first = children[0]
  if (first === undefined) return
  await tx.run(sql`
    insert into child_addresses (id, organisation_id, environment, master_wallet_id, child_index, address, name, metadata, created_at)
    select given.id, ${tenant.organisationId}, ${tenant.environment}, ${first.masterWalletId}, given.child_index, given.address, ${first.name},
      ${JSON.stringify(first.metadata)}::jsonb, ${first.createdAt}
    from unnest(${children.map((child) => child.id)}::text[], ${children.map((child) => child.childIndex)}::bigint[],
      ${children.map((child) => child.address)}::text[]) as given (id, child_index, address)`)
}

export function findChildAddress(
  db: Queryable,
  tenant: Tenant,
  { id: walletId, cad }: { readonly id: MasterWalletId; readonly cad: ChildAddressId },
): Promise<ChildAddressRow | undefined> {
  return db.maybeOne(
    ChildAddressRow,
    sql`
    select ${columns} from child_addresses c join master_wallets m on m.id = master_wallet_id
    where c.organisation_id = ${tenant.organisationId} and c.environment = ${tenant.environment} and c.id = ${cad}
      and master_wallet_id = ${walletId}`,
  )
}

/** Returns the children with these indices, the lowest first. */
export function listChildrenBetween(
  db: Queryable,
  tenant: Tenant,
  walletId: MasterWalletId,
  { first, last }: { readonly first: number; readonly last: number },
): Promise<ChildAddressRow[]> {
  return db.many(
    ChildAddressRow,
    sql`
    select ${columns} from child_addresses c join master_wallets m on m.id = master_wallet_id
    where c.organisation_id = ${tenant.organisationId} and c.environment = ${tenant.environment} and master_wallet_id = ${walletId}
      and child_index between ${first} and ${last}
    order by child_index`,
  )
}

/** Locks the child's row until the transaction ends. */
export function lockChildAddress(
  tx: Tx,
  tenant: Tenant,
  { id: walletId, cad }: { readonly id: MasterWalletId; readonly cad: ChildAddressId },
): Promise<ChildAddressRow | undefined> {
  return tx.maybeOne(
    ChildAddressRow,
    sql`
    select ${columns} from child_addresses c join master_wallets m on m.id = master_wallet_id
    where c.organisation_id = ${tenant.organisationId} and c.environment = ${tenant.environment} and c.id = ${cad}
      and master_wallet_id = ${walletId}
    for update of c`,
  )
}

/** Updates the fields that its owner may change; the caller has locked the child. */
export async function updateChildAddress(
  tx: Tx,
  tenant: Tenant,
  { id: childId, name, metadata }: Pick<ChildAddressRow, 'id' | 'name' | 'metadata'>,
): Promise<void> {
  await tx.run(sql`
    update child_addresses set name = ${name}, metadata = ${JSON.stringify(metadata)}::jsonb
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${childId}`)
}

/** Children of a wallet, newest first, one more than the limit; `below` is the last index of the previous page. */
export function listChildAddresses(
  db: Queryable,
  tenant: Tenant,
  walletId: MasterWalletId,
  page: { readonly limit: number; readonly below: string | undefined },
): Promise<ListedRows<ChildAddressRow>> {
  return listRows(
    db,
    ChildAddressRow,
    page.limit,
    sql`
    select ${columns} from child_addresses c join master_wallets m on m.id = master_wallet_id
    where c.organisation_id = ${tenant.organisationId} and c.environment = ${tenant.environment} and master_wallet_id = ${walletId}
      and ${page.below === undefined ? sql`true` : sql`child_index < ${page.below}::bigint`}
    order by child_index desc`,
  )
}

/** Selects the number of child addresses of a tenant, to rebuild the counter. */
export function countingChildAddresses(tenant: Tenant): Sql {
  return sql`
    select count(*) from child_addresses where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}`
}

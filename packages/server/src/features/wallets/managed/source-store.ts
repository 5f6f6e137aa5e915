import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { type Queryable, sql, type Tx } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'
import { ChainName } from '../../chains/index.ts'
import { StoredAddress } from '../store.ts'

const Index = z.bigint().transform(Number)

/** A master wallet or a child of one as what pays out: its address, its place below the seed, and the master that pays its gas. */
export const SourceWallet = z.object({
  id: z.union([id('mwt'), id('cad')]),
  address: StoredAddress,
  chain: ChainName,
  masterWalletId: id('mwt'),
  masterAddress: StoredAddress,
})
export type SourceWallet = z.output<typeof SourceWallet>

const masters = sql`select id, address, chain, id as master_wallet_id, address as master_address from master_wallets`
const children = sql`
  select c.id, c.address, m.chain, m.id as master_wallet_id, m.address as master_address from child_addresses c join master_wallets m on m.id = c.master_wallet_id`

export function findSource(db: Queryable, tenant: Tenant, walletId: string): Promise<SourceWallet | undefined> {
  const { organisationId, environment } = tenant
  return db.maybeOne(
    SourceWallet,
    walletId.startsWith('mwt_')
      ? sql`${masters} where organisation_id = ${organisationId} and environment = ${environment} and id = ${walletId}`
      : sql`${children} where c.organisation_id = ${organisationId} and c.environment = ${environment} and c.id = ${walletId}`,
  )
}

/** Lets one payment at a time out of a wallet be weighed against what it holds. */
export async function lockSource(tx: Tx, tenant: Tenant, walletId: string): Promise<void> {
  await tx.run(
    sql`select pg_advisory_xact_lock(hashtextextended(${`wallet-source:${tenant.organisationId}/${tenant.environment}/${walletId}`}, 0))`,
  )
}

const KeyRow = z.object({
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  account: z.number(),
  index: Index,
})

/** Whose key, and which, signs for an address; undefined for an address that no tenant's seed gave. */
export function findKeyOfAddress(db: Queryable, address: string): Promise<z.output<typeof KeyRow> | undefined> {
  return db.maybeOne(
    KeyRow,
    sql`
    select organisation_id, environment, account, 0::bigint as index from master_wallets where address = ${address}
    union all
    select c.organisation_id, c.environment, m.account, c.child_index as index
    from child_addresses c join master_wallets m on m.id = c.master_wallet_id where c.address = ${address}
    limit 1`,
  )
}

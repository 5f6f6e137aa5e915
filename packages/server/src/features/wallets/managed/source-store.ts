import { type Address, checksumAddress } from '@purser/protocol'
import { z } from 'zod'
import type { WalletSigner } from '../../../custody/signer.ts'
import type { WalletKeys } from '../../../custody/wallet-keys.ts'
import type { Tenant } from '../../../platform/ctx.ts'
import { batchByDb } from '../../../platform/db/batch.ts'
import { StoredHex } from '../../../platform/db/columns.ts'
import { type Db, type Queryable, sql, type Tx } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'
import { ChainName } from '../../chains/index.ts'

const Index = z.bigint().transform(Number)

/** A master wallet or a child of one as a source of payments: its address, its path below the seed, and the master that pays its gas. */
export const SourceWallet = z.object({
  id: z.union([id('mwt'), id('cad')]),
  address: StoredHex,
  chain: ChainName,
  masterWalletId: id('mwt'),
  masterAddress: StoredHex,
  retiredAt: z.date().nullable(),
})
export type SourceWallet = z.output<typeof SourceWallet>

const OwnedSource = SourceWallet.extend({ organisationId: id('org'), environment: z.enum(['test', 'live']) })

const masters = sql`
  select organisation_id, environment, id, address, chain, id as master_wallet_id, address as master_address, retired_at from master_wallets`
const children = sql`
  select c.organisation_id, c.environment, c.id, c.address, m.chain, m.id as master_wallet_id, m.address as master_address, m.retired_at from child_addresses c join master_wallets m on m.id = c.master_wallet_id`

interface Named {
  readonly tenant: Tenant
  readonly walletId: string
}

/** Returns a tenant's wallet as a source of payments; undefined if the tenant does not have it. */
export type FindSource = (db: Db, tenant: Tenant, walletId: string) => Promise<SourceWallet | undefined>

/** Creates the finder of one process. Concurrent callers share a statement. */
export function createFindSource(): FindSource {
  const find = batchByDb<Named, SourceWallet | undefined>({ itemsMax: 256, batchesMax: 2 }, listSources)
  return (db, tenant, walletId) => find(db, { tenant, walletId })
}

async function listSources(db: Queryable, named: readonly Named[]): Promise<(SourceWallet | undefined)[]> {
  const given = sql`
    select * from unnest(${named.map(({ tenant }) => tenant.organisationId)}::text[], ${named.map(({ tenant }) => tenant.environment)}::text[],
      ${named.map(({ walletId }) => walletId)}::text[])`
  const rows = await db.many(
    OwnedSource,
    sql`
    ${masters} where (organisation_id, environment, id) in (${given})
    union all ${children} where (c.organisation_id, c.environment, c.id) in (${given})`,
  )
  const byName = new Map(
    rows.map(({ organisationId, environment, ...source }) => {
      return [nameOf({ tenant: { organisationId, environment }, walletId: source.id }), source]
    }),
  )
  return named.map((one) => byName.get(nameOf(one)))
}

function nameOf({ tenant: { organisationId, environment }, walletId }: Named): string {
  return `${organisationId}/${environment}/${walletId}`
}

const KeyRow = z.object({
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  account: z.number(),
  index: Index,
})

/** Whether this service signs for an address, of any tenant. */
export async function isManagedAddress(db: Queryable, address: Address): Promise<boolean> {
  return (await findKeyOfAddress(db, checksumAddress(address))) !== undefined
}

/** The tenant and path of the key of an address; undefined for an address that no tenant's seed derived. */
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

export interface IndexGaps {
  /** Accounts of each organisation's seed to skip. */
  readonly accounts: number
  /** Children of each master wallet to skip. */
  readonly children: number
}

/** One more than the last index that BIP-32 derives without the private parent. */
const indexEnd = 2 ** 31

/**
 * Moves the next indices of every tenant beyond those that a lost part of the database may have derived, so that no address is assigned to
 * two customers. Returns the number of master wallets.
 */
export async function moveIndices(tx: Tx, { accounts, children }: IndexGaps): Promise<number> {
  await tx.run(sql`
    insert into managed_wallet_accounts (organisation_id, environment, next_account)
    select organisation_id, environment, ${accounts}::integer from wallet_seeds
    on conflict (organisation_id, environment) do update
      set next_account = least(managed_wallet_accounts.next_account::bigint + ${accounts}, ${indexEnd - 1})`)
  return tx.run(sql`update master_wallets set next_child = least(next_child + ${children}, ${indexEnd})`)
}

/** Finds the signer of an address of a managed wallet or child, of any tenant: for senders of their stored transactions. */
export function createAccountSigners(deps: {
  readonly db: Db
  readonly walletKeys: WalletKeys
}): (account: Address) => Promise<WalletSigner | undefined> {
  return async (address) => {
    const key = await findKeyOfAddress(deps.db, address)
    if (key === undefined) return undefined
    const { organisationId, environment, account, index } = key
    return deps.walletKeys.signer({ organisationId, environment }, { account, index, address })
  }
}

import { type Address, type Chain, chains } from '@purser/protocol'
import { z } from 'zod'
import type { Environment, Tenant } from '../../../platform/ctx.ts'
import { StoredHex } from '../../../platform/db/columns.ts'
import { type Queryable, sql, type Tx } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'

/** An address to watch for a wallet, with the wallet's networks and tokens. */
export interface Watch {
  readonly walletId: string
  readonly address: Address
  /** The chain name that the owner sent. */
  readonly chain: Chain
  /** The network that this name means in the wallet's environment. */
  readonly network: string
  /** Token symbols. */
  readonly supportedTokens: readonly string[]
}

/** Inserts watches in one statement. Existing ones are not changed. */
export async function insertWatches(tx: Tx, tenant: Tenant, watches: readonly Watch[], since: Date): Promise<void> {
  const walletIds = watches.map(({ walletId }) => walletId)
  const chains = watches.map(({ chain }) => chain)
  const networks = watches.map(({ network }) => network)
  const addresses = watches.map(({ address }) => Buffer.from(address.slice(2), 'hex'))
  const tokens = watches.map(({ supportedTokens }) => JSON.stringify(supportedTokens))
  await tx.run(sql`
    insert into watched_addresses (wallet_id, network, chain, organisation_id, environment, address, tokens, since)
    select wallet_id, network, chain, ${tenant.organisationId}, ${tenant.environment}, address,
      array(select jsonb_array_elements_text(tokens::jsonb)), ${since}
    from unnest(${walletIds}::text[], ${networks}::text[], ${chains}::text[], ${addresses}::bytea[], ${tokens}::text[]) as given (wallet_id, network, chain, address, tokens)
    on conflict (wallet_id, network) do nothing`)
}

/** The end of watching; `block` is the newest one of the wallet's own network that a majority of the nodes named, if it did. */
export interface WatchEnd {
  readonly at: Date
  readonly block: bigint | undefined
  /** Whether that block's time shows that the next one was not mined yet. */
  readonly isNewest: boolean
}

/** Ends every watch of a wallet. */
export async function endWatches(tx: Tx, tenant: Tenant, walletId: string, until: WatchEnd): Promise<void> {
  await tx.run(sql`
    update watched_addresses set until = ${until.at}, until_block = ${until.block ?? null}, is_until_newest = ${until.isNewest}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and wallet_id = ${walletId} and until is null`)
}

/** Most ended watches of one address that are kept for the wallets that an organisation registered for one network. */
const endedWatchesMax = 8

/**
 * Deletes the oldest ended watches of the customer's wallets at an address if there are more than are kept. The oldest that is kept begins where they
 * began, so that a transfer that was not read yet is still booked.
 */
export async function mergeEndedWatches(
  tx: Tx,
  tenant: Tenant,
  { address, network }: Pick<Watch, 'address' | 'network'>,
): Promise<void> {
  await tx.run(sql`
    with ended as (
      select wallet_id, row_number() over (order by until desc, wallet_id desc) as place from watched_addresses
      where address = ${Buffer.from(address.slice(2), 'hex')} and organisation_id = ${tenant.organisationId}
        and environment = ${tenant.environment} and network = ${network} and until is not null and wallet_id like 'byw\\_%'),
    merged as (
      delete from watched_addresses
      where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and network = ${network}
        and wallet_id in (select wallet_id from ended where place > ${endedWatchesMax})
      returning since)
    update watched_addresses set since = least(since, (select min(since) from merged))
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and network = ${network}
      and wallet_id = (select wallet_id from ended where place = ${endedWatchesMax}) and exists (select from merged)`)
}

/** Number of watches, including ended ones. */
export async function countWatches(db: Queryable, environment: Environment): Promise<number> {
  const row = await db.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from watched_addresses where environment = ${environment}`,
  )
  return Number(row.count)
}

const PackedPage = z.object({
  addresses: z.instanceof(Uint8Array).nullable(),
  walletId: z.string().nullable(),
  network: z.string().nullable(),
})

/** Start of a page of addresses: after this watch, in the order of the primary key. */
export interface WatchKey {
  readonly walletId: string
  readonly network: string
}

/** Addresses, packed at 20 bytes each, and the start of the next page; of all watches, including ended ones. */
export async function packAddresses(
  db: Queryable,
  environment: Environment,
  page: { readonly after: WatchKey; readonly limit: number },
): Promise<{ readonly packed: Uint8Array; readonly next: WatchKey | undefined }> {
  const row = await db.one(
    PackedPage,
    sql`
    with page as (
      select wallet_id, network, case when environment = ${environment} then address else ''::bytea end as address from watched_addresses
      where (wallet_id, network) > (${page.after.walletId}, ${page.after.network})
      order by wallet_id, network limit ${page.limit}),
    last as (select wallet_id, network from page order by wallet_id desc, network desc limit 1)
    select (select string_agg(address, ''::bytea) from page) as addresses,
      (select wallet_id from last) as wallet_id, (select network from last) as network`,
  )
  const { addresses, walletId, network } = row
  return {
    packed: addresses ?? new Uint8Array(),
    next: walletId === null || network === null ? undefined : { walletId, network },
  }
}

/** The oldest transaction that may still commit: the writes of it and of later ones must be read again. */
export async function readHorizon(db: Queryable): Promise<bigint> {
  const row = await db.one(
    z.object({ horizon: z.bigint() }),
    sql`select pg_snapshot_xmin(pg_current_snapshot())::text::bigint as horizon`,
  )
  return row.horizon
}

/**
 * Addresses written by committed transactions from `horizon` on, and the next horizon. Rows from a restored dump, whose transaction ids are
 * of another cluster, are excluded: the first read returned them.
 */
export async function packAddressesSince(
  db: Queryable,
  environment: Environment,
  horizon: bigint,
): Promise<{ readonly packed: Uint8Array; readonly horizon: bigint }> {
  const row = await db.one(
    z.object({ addresses: z.instanceof(Uint8Array).nullable(), horizon: z.bigint() }),
    sql`
    select pg_snapshot_xmin(pg_current_snapshot())::text::bigint as horizon,
      (select string_agg(address, ''::bytea) from watched_addresses
       where written_in >= ${horizon}::text::xid8 and written_in < pg_snapshot_xmax(pg_current_snapshot()) and environment = ${environment}) as addresses`,
  )
  return { packed: row.addresses ?? new Uint8Array(), horizon: row.horizon }
}

export const WatchRow = z.object({
  walletId: z.string(),
  network: z.string(),
  chain: z.enum(chains),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  /** In lower case. */
  address: StoredHex,
  tokens: z.array(z.string()),
  since: z.date(),
  until: z.date().nullable(),
  untilBlock: z.bigint().nullable(),
  isUntilNewest: z.boolean(),
})
export type WatchRow = z.output<typeof WatchRow>

export interface WatchesAt {
  readonly addresses: readonly Address[]
  readonly endedAfter: Date
  readonly organisationId?: string | undefined
}

/** The watches of the addresses that did not end before `endedAfter`, of one organisation or of all. */
export function listWatchesAt(
  db: Queryable,
  environment: Environment,
  { addresses, endedAfter, organisationId }: WatchesAt,
): Promise<WatchRow[]> {
  const bytes = addresses.map((address) => Buffer.from(address.slice(2), 'hex'))
  return db.many(
    WatchRow,
    sql`
    select wallet_id, network, chain, organisation_id, environment, '0x' || encode(address, 'hex') as address, tokens, since, until, until_block,
      is_until_newest
    from watched_addresses where address = any(${bytes}::bytea[]) and environment = ${environment}
      and (until is null or until > ${endedAfter})
      and ${organisationId === undefined ? sql`true` : sql`organisation_id = ${organisationId}`} order by wallet_id, network`,
  )
}

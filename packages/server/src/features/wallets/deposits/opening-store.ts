import type { Address, NetworkName } from '@purser/protocol'
import { z } from 'zod'
import type { Environment, Tenant } from '../../../platform/ctx.ts'
import { StoredHex } from '../../../platform/db/columns.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { onAnyOf } from '../../../platform/db/on-any-of.ts'
import { id } from '../../../platform/ids.ts'

/** The tokens whose transfers on the network are booked; null where the previous version began to follow it. */
export async function findFollowedTokens(db: Queryable, network: NetworkName): Promise<readonly string[] | null> {
  const row = await db.one(
    z.object({ tokens: z.array(z.string()).nullable() }),
    sql`select tokens from deposit_cursors where network = ${network}`,
  )
  return row.tokens
}

/** Stores the tokens whose transfers are booked. Blocks above `recheckFrom` are read a second time for them. */
export async function setFollowedTokens(
  tx: Tx,
  network: NetworkName,
  { tokens, recheckFrom }: { readonly tokens: readonly string[]; readonly recheckFrom: bigint | undefined },
): Promise<void> {
  await tx.run(sql`
    update deposit_cursors set tokens = ${tokens}::text[], checked = least(checked, ${recheckFrom ?? null}::bigint) where network = ${network}`)
}

const ManagedWallet = z.object({
  walletId: z.string(),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  address: StoredHex,
})
export type ManagedWallet = z.output<typeof ManagedWallet>

/** Managed wallets of all organisations, in the order of their ids, after this one. */
export function listManagedWallets(
  db: Queryable,
  environment: Environment,
  page: { readonly after: string; readonly most: number },
): Promise<ManagedWallet[]> {
  return db.many(
    ManagedWallet,
    sql`
    select distinct on (wallet_id) wallet_id, organisation_id, environment, '0x' || encode(address, 'hex') as address from watched_addresses
    where wallet_id > ${page.after} and environment = ${environment} and wallet_id !~ '^byw_'
    order by wallet_id limit ${page.most}`,
  )
}

export interface OpeningAmount {
  readonly wallet: ManagedWallet
  /** As the network's registry writes it. */
  readonly token: Address
  readonly rawAmount: bigint
}

/** Stores the balances of wallets after a block, instead of those that were stored before. */
export async function upsertOpenings(
  db: Queryable,
  network: NetworkName,
  block: bigint,
  openings: readonly OpeningAmount[],
): Promise<void> {
  if (openings.length === 0) return
  const each = <T>(read: (opening: OpeningAmount) => T): T[] => openings.map(read)
  await db.run(sql`
    insert into opening_amounts (wallet_id, network, token, organisation_id, environment, block_number, raw_amount)
    select wallet_id, ${network}, token, organisation_id, environment, ${block}, raw_amount
    from unnest(${each(({ wallet }) => wallet.walletId)}::text[], ${each(({ token }) => token)}::text[],
      ${each(({ wallet }) => wallet.organisationId)}::text[], ${each(({ wallet }) => wallet.environment)}::text[],
      ${each(({ rawAmount }) => rawAmount.toString())}::numeric[]) as given (wallet_id, token, organisation_id, environment, raw_amount)
    on conflict (wallet_id, network, token) do update set block_number = excluded.block_number, raw_amount = excluded.raw_amount`)
}

/** More than any balance. */
const allRaw = 2n ** 256n

/**
 * Puts the whole balance of a wallet on hold until `storeUnread` replaces it with the amounts that it read: in the followed tokens, or, on a network
 * that was never read, in all tokens, because the process that begins to follow the network may have read the balances already.
 */
export async function insertUnread(
  tx: Tx,
  tenant: Tenant,
  walletId: string,
  tokens: readonly { readonly network: NetworkName; readonly token: Address }[],
): Promise<void> {
  await tx.run(sql`
    insert into opening_amounts (wallet_id, network, token, organisation_id, environment, block_number, raw_amount, is_read)
    select ${walletId}, network, token, ${tenant.organisationId}, ${tenant.environment}, -1, ${allRaw.toString()}::numeric, false
    from unnest(${tokens.map(({ network }) => network)}::text[], ${tokens.map(({ token }) => token)}::text[]) as given (network, token)
    join deposit_cursors c using (network)
    where c.scanned is null or c.tokens is null or given.token = any(c.tokens)
    on conflict do nothing`)
}

const UnreadOpening = z.object({
  walletId: z.string(),
  token: StoredHex,
  address: StoredHex,
  /** The block that the reading waits for; -1 until it is known. */
  blockNumber: z.bigint(),
})
export type UnreadOpening = z.output<typeof UnreadOpening>

/** A condition: whether the networks have any opening to read. */
export function isAnyUnread(networks: readonly string[]): Sql {
  return onAnyOf(
    networks,
    sql`select network from opening_amounts o where o.network = n.network and not o.is_read limit 1`,
  )
}

/** Openings of a network that are not read yet. Those of tokens that are not followed are deleted: they are read when the token is followed. */
export function listUnread(db: Queryable, network: NetworkName, most: number): Promise<UnreadOpening[]> {
  return db.many(
    UnreadOpening,
    sql`
    with unfollowed as (
      delete from opening_amounts o using deposit_cursors c
      where o.network = ${network} and not o.is_read and c.network = o.network and c.scanned is not null and not (o.token = any(c.tokens)))
    select o.wallet_id, o.token, o.block_number, w.address
    from opening_amounts o join deposit_cursors c on c.network = o.network
    cross join lateral (
      select '0x' || encode(address, 'hex') as address from watched_addresses where wallet_id = o.wallet_id limit 1) as w
    where o.network = ${network} and not o.is_read and c.scanned is not null and coalesce(o.token = any(c.tokens), true)
    order by o.wallet_id limit ${most}`,
  )
}

/** Stores the block that these openings wait for: this one, or that up to which the network was read, if that is later. */
export async function markAwaited(db: Queryable, network: NetworkName, block: bigint): Promise<void> {
  await db.run(sql`
    update opening_amounts o set block_number = greatest(${block}, c.scanned) from deposit_cursors c
    where o.network = ${network} and c.network = o.network and not o.is_read and o.block_number < 0`)
}

/** Stores the balances that were not read so far. */
export async function storeUnread(
  db: Queryable,
  network: NetworkName,
  block: bigint,
  read: readonly { readonly walletId: string; readonly token: string; readonly rawAmount: bigint }[],
): Promise<void> {
  await db.run(sql`
    update opening_amounts o set raw_amount = given.raw_amount, block_number = ${block}, is_read = true
    from unnest(${read.map(({ walletId }) => walletId)}::text[], ${read.map(({ token }) => token)}::text[],
      ${read.map(({ rawAmount }) => rawAmount.toString())}::numeric[]) as given (wallet_id, token, raw_amount)
    where o.network = ${network} and o.wallet_id = given.wallet_id and o.token = given.token and not o.is_read`)
}

import type { Address, NetworkName } from '@purser/protocol'
import { z } from 'zod'
import type { Environment } from '../../../platform/ctx.ts'
import { type Queryable, sql, type Tx } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'

/** The tokens whose transfers on the network are booked; null where the version before began to follow it. */
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
  address: z.templateLiteral(['0x', z.string()]),
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

import type { Address } from '@purser/protocol'
import { z } from 'zod'
import { StoredBigInt } from '../../platform/db/columns.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { lockNameOfText } from '../../platform/db/lock-name.ts'
import type { TransferRow } from './store.ts'

/** The coin that an account received in a block from contracts. The name of a network is of one environment. */
export interface CoinOfBlock {
  readonly network: string
  readonly account: Address
  readonly block: bigint
}

/** The part of it that proves the delivery or the refund of one transfer, in wei. */
export interface CoinShare extends CoinOfBlock {
  readonly rawLeast: bigint
  /** The shares of other transfers that the nodes counted too. */
  readonly rawOthers: bigint
  /** The place of the named transaction, if another transfer could have it as its delivery. */
  readonly message: string | undefined
}

const sumOf = ({ network, account, block }: CoinOfBlock): Sql => sql`
  select coalesce(sum(raw_least), 0) from coin_shares
  where network = ${network} and account = ${account.toLowerCase()} and block_number = ${block}`

/** The shares that transfers of all tenants have taken. */
export async function sumCoinShares(db: Queryable, of: CoinOfBlock): Promise<bigint> {
  return (await db.one(z.object({ raw: StoredBigInt }), sql`select (${sumOf(of)})::text as raw`)).raw
}

/**
 * Takes a share for a transfer that has none. Returns false, and changes nothing, if other transfers have taken more than the nodes counted, or if
 * the named transaction is the delivery of another transfer that does not share. Until the database transaction ends, no other transfer takes a share.
 */
export async function takeCoinShare(
  tx: Tx,
  { id, organisationId, environment }: Pick<TransferRow, 'id' | 'organisationId' | 'environment'>,
  share: CoinShare,
): Promise<boolean> {
  const { network, account, block, rawLeast, rawOthers, message } = share
  const lock = lockNameOfText('coin', `${network}/${account.toLowerCase()}/${block}`)
  await tx.run(sql`select pg_advisory_xact_lock(hashtextextended(${lock}, 0))`)
  const changed = await tx.run(sql`
    insert into coin_shares (transfer_id, organisation_id, environment, network, account, block_number, raw_least)
    select ${id}, ${organisationId}, ${environment}, ${network}, ${account.toLowerCase()}, ${block}, ${rawLeast.toString()}::numeric
    where (${sumOf(share)}) <= ${rawOthers.toString()}::numeric and not exists (
      select from transfers t
      where t.to_network = ${network} and t.partner_message = ${message ?? null} and t.id <> ${id}
        and not exists (select from coin_shares s where s.transfer_id = t.id))`)
  return changed === 1
}

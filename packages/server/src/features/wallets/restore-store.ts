import { sql, type Tx } from '../../platform/db/db.ts'

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

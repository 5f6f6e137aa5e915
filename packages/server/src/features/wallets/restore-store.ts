import { sql, type Tx } from '../../platform/db/db.ts'

export interface IndexGaps {
  /** Accounts of each organisation's seed that are passed over. */
  readonly accounts: number
  /** Children of each master wallet that are passed over. */
  readonly children: number
}

/** The last index that BIP-32 derives without the private parent, and one more. */
const indexEnd = 2 ** 31

/**
 * Moves what is derived next, of every tenant, beyond what a lost part of the database may have derived: no address is ever given to two
 * customers. Returns how many master wallets there are.
 */
export async function moveIndices(tx: Tx, { accounts, children }: IndexGaps): Promise<number> {
  await tx.run(sql`
    insert into managed_wallet_accounts (organisation_id, environment, next_account)
    select organisation_id, environment, ${accounts}::integer from wallet_seeds
    on conflict (organisation_id, environment) do update
      set next_account = least(managed_wallet_accounts.next_account::bigint + ${accounts}, ${indexEnd - 1})`)
  return tx.run(sql`update master_wallets set next_child = least(next_child + ${children}, ${indexEnd})`)
}

import { type Db, sql } from '../src/platform/db/db.ts'

/** Stores the frozen amount of a wallet's token, as screening does, for rows that a test inserted itself. */
export async function storeFrozenPlace(db: Db, walletId: string | undefined): Promise<void> {
  await db.run(sql`
    insert into tainted_places (organisation_id, environment, wallet_id, network, token, raw_frozen)
    select organisation_id, environment, wallet_id, network, token, sum(frozen_raw_amount) from wallet_transactions
    where wallet_id = ${walletId} group by organisation_id, environment, wallet_id, network, token
    on conflict (wallet_id, network, token) do update set raw_frozen = excluded.raw_frozen`)
}

import { type Db, sql } from '../src/platform/db/db.ts'

/** Stores the frozen amount of a wallet's token, as screening does, for rows that a test inserted itself. */
export async function storeFrozenPlace(db: Db, walletId: string | undefined): Promise<void> {
  await db.run(sql`
    insert into tainted_places (organisation_id, environment, wallet_id, network, token, raw_frozen, raw_left)
    select organisation_id, environment, wallet_id, network, token, sum(frozen_raw_amount), 0 from wallet_transactions
    where wallet_id = ${walletId} group by organisation_id, environment, wallet_id, network, token
    on conflict (wallet_id, network, token) do update set raw_frozen = excluded.raw_frozen, raw_left = 0,
      left_revision = tainted_places.left_revision + 1`)
}

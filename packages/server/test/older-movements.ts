import { type Db, sql } from '../src/platform/db/db.ts'

/** Makes the movements of a master wallet older for its spend policy, whose windows follow the database's clock. */
export async function makeMovementsOlder(db: Db, masterWalletId: string, ms: number): Promise<void> {
  await db.run(sql`
    update policy_reservations set reserved_at = reserved_at - ${ms} * interval '1 ms' where master_wallet_id = ${masterWalletId}`)
}

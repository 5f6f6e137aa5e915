import { z } from 'zod'
import { type Db, sql } from '../src/platform/db/db.ts'

/** What recording a payment leaves behind, of every tenant: the same text twice says that nothing was written down in between. */
export async function footprintOf(db: Db): Promise<string> {
  const { trace } = await db.one(
    z.object({ trace: z.string() }),
    sql`select concat((select count(*) from payments), ' ', (select count(*) from events where type = 'payment.received'), ' ',
      (select coalesce(sum(used), 0) from usage_counters where kind = 'payments'), ' ',
      (select coalesce(sum(nano_usd), 0) from gas_budgets)) as trace`,
  )
  return trace
}

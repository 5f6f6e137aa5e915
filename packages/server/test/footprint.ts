import { z } from 'zod'
import { type Db, sql } from '../src/platform/db/db.ts'

/**
 * Everything that recording a payment writes, of every tenant. Two equal texts mean that nothing was written in between.
 */
export async function footprintOf(db: Db): Promise<string> {
  const { trace } = await db.one(
    z.object({ trace: z.string() }),
    sql`select concat((select count(*) from payments), ' ', (select count(*) from events where type = 'payment.received'), ' ',
      (select coalesce(sum(used), 0) from usage_counters where kind = 'payments'), ' ',
      (select coalesce(sum(nano_usd), 0) from gas_budgets)) as trace`,
  )
  return trace
}

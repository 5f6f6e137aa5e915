import { z } from 'zod'
import { type Db, sql } from '../src/platform/db/db.ts'

/** Returns the spans of blocks whose stored balance is not the sum of the rows. */
export function listWrongRollups(db: Db): Promise<unknown[]> {
  return db.many(
    z.looseObject({}),
    sql`
    with there as (
      select wallet_id, network, token, wallet_rollup_span(block_number) as span, organisation_id, environment,
        sum(case direction when 'in' then raw_amount else -raw_amount end) as raw_amount
      from wallet_transactions where status <> 'withdrawn' group by 1, 2, 3, 4, 5, 6
    )
    select there.raw_amount::text as there, known.raw_amount::text as known, span::text
    from there full join wallet_rollups known using (wallet_id, network, token, span, organisation_id, environment)
    where coalesce(there.raw_amount, 0) <> coalesce(known.raw_amount, 0)`,
  )
}

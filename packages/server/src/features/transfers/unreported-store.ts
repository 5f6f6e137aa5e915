import { z } from 'zod'
import { type Queryable, sql } from '../../platform/db/db.ts'
import { id } from '../../platform/ids.ts'
import type { TransferId } from './store.ts'

const UnreportedRow = z.object({ id: id('wtx'), endedAt: z.string() })

/** The last transfer of the previous list, by the text of its end; undefined if the next one begins with the oldest. */
export interface UnreportedPlace {
  after: z.output<typeof UnreportedRow> | undefined
}

/**
 * Transfers that ended before this instant without a response, oldest first: their caller's process died. `place` is moved on behind them, and after the
 * last one to the start.
 */
export async function listUnreported(
  db: Queryable,
  { before, place, most }: { readonly before: Date; readonly place: UnreportedPlace; readonly most: number },
): Promise<TransferId[]> {
  const { endedAt, id: afterId } = place.after ?? { endedAt: '-infinity', id: '' }
  const rows = await db.many(
    UnreportedRow,
    sql`
    select id, ended_at::text as ended_at from transfers
    where ended_at < ${before} and event_id is null and answered is null and purpose = 'transfer' and (ended_at, id) > (${endedAt}::timestamptz, ${afterId})
    order by transfers.ended_at, id limit ${most}`,
  )
  place.after = rows.length < most ? undefined : rows.at(-1)
  return rows.map((row) => row.id)
}

import { utcMonthOf } from '../src/platform/clock.ts'
import type { Db } from '../src/platform/db/db.ts'
import { firstIdAt } from '../src/platform/db/page.ts'
import {
  listPartitions,
  type PartitionedTable,
  partitionedTables,
  plain,
  startOfMonth,
} from '../src/platform/db/partitions.ts'

/**
 * Gives empty tables of a new database a partition for each of the last months before the current one, as a service has that runs for so long. Returns
 * the first instants of these months.
 */
export async function addPastMonths(
  db: Db,
  now: Date,
  months: number,
  tables: readonly PartitionedTable[] = partitionedTables,
): Promise<Date[]> {
  const starts = Array.from({ length: months }, (_, at) => startOfMonth(now, at - months))
  for (const one of tables) {
    const { table, prefix } = one
    const idAt = (instant: Date): string => `'${firstIdAt(prefix, instant.getTime())}'`
    const [first] = await listPartitions(db, one)
    await db.run(plain(`alter table ${table} detach partition ${first?.name}`))
    for (const [at, start] of starts.entries()) {
      const from = at === 0 ? 'minvalue' : idAt(start)
      const name = `${table}_from_${utcMonthOf(start).replace('-', '_')}`
      await db.run(
        plain(
          `create table ${name} partition of ${table} for values from (${from}) to (${idAt(startOfMonth(start, 1))})`,
        ),
      )
    }
    const bounds = `from (${idAt(startOfMonth(now))}) to ('${first?.until}')`
    await db.run(plain(`alter table ${table} attach partition ${first?.name} for values ${bounds}`))
  }
  return starts
}

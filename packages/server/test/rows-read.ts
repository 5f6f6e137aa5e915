import { z } from 'zod'
import { type Db, sql, type Tx } from '../src/platform/db/db.ts'

/** How many rows of the tables whose names match the pattern the connection of the transaction has read up to now. */
export async function rowsRead(tx: Tx, tables: string): Promise<bigint> {
  const { rows } = await tx.one(
    z.object({ rows: z.bigint() }),
    sql`select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint as rows from pg_stat_xact_user_tables where relname ~ ${tables}`,
  )
  return rows
}

/** A database that adds up the rows of these tables that its transactions read. */
export function readsCounted(db: Db, tables: string): { readonly db: Db; readonly rows: () => bigint } {
  let rows = 0n
  const counted: Db = {
    ...db,
    tx: (work, options) =>
      db.tx(async (tx) => {
        const before = await rowsRead(tx, tables)
        const result = await work(tx)
        rows += (await rowsRead(tx, tables)) - before
        return result
      }, options),
  }
  return { db: counted, rows: () => rows }
}

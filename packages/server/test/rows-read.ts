import { z } from 'zod'
import { type Db, type Queryable, sql, type Tx } from '../src/platform/db/db.ts'

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

/** Defines `id_at(prefix, ms)`: an id that sorts by its time, as the service's own do. */
export async function defineIdAt(db: Db): Promise<void> {
  await db.run({
    values: [],
    text: `create function id_at(prefix text, ms bigint) returns text language sql immutable as $$
      select prefix || '_' || string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', ((ms >> (5 * place)) & 31)::int + 1, 1), '' order by place desc)
        || repeat('0', 16) from generate_series(0, 9) as place $$`,
  })
}

interface Read {
  readonly rows: number
  readonly scanned: bigint
}

/** Runs the statement of a list with a general plan, in whose choice the values have no part, or with one made for the values. */
export function readBy(
  db: Db,
  list: (db: Queryable) => Promise<unknown>,
  mode: 'force_generic_plan' | 'force_custom_plan',
): Promise<Read> {
  return db.tx(async (tx) => {
    await tx.run(sql`select set_config('plan_cache_mode', ${mode}, true)`)
    const scanned = async () => {
      const { count } = await tx.one(
        z.object({ count: z.bigint() }),
        sql`select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint as count from pg_stat_xact_user_tables`,
      )
      return count
    }
    const before = await scanned()
    let rows = 0
    // The filled rows are not whole, so they are counted and not parsed.
    const counting: Queryable = {
      ...tx,
      many: async (_row, statement) => {
        rows += await tx.run(statement)
        return []
      },
    }
    await list(counting)
    return { rows, scanned: (await scanned()) - before }
  })
}

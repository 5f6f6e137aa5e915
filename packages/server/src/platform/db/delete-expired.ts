import { type Queryable, type Sql, sql } from './db.ts'

/** The database in which rows are deleted. When `stopping` is aborted, the next run deletes the rest. */
export interface Sweep<D extends Queryable = Queryable> {
  readonly db: D
  readonly stopping?: AbortSignal | undefined
}

/** Most rows that one statement deletes. */
export const deletionsMax = 1_000

/** Rows to delete; an index on the columns of the order finds them. */
export interface Expired {
  readonly from: Sql
  readonly where: Sql
  readonly orderBy: Sql
  /** The column that identifies a row; default `ctid`, which does so only in a table without partitions. */
  readonly key?: Sql
}

/**
 * Deletes the rows, each statement at most `deletionsMax` of them, so that a backlog of any size never meets the limit of time and no lock is kept
 * for long. Rows that another process has locked stay for the next run. Returns the number of deleted rows.
 */
export async function deleteExpired(
  { db, stopping }: Sweep,
  { from, where, orderBy, key = sql`ctid` }: Expired,
): Promise<number> {
  let deleted = 0
  for (;;) {
    const count = await db.run(sql`
      delete from ${from} where ${key} = any(array(
        select ${key} from ${from} where ${where} order by ${orderBy} limit ${deletionsMax} for update skip locked))`)
    deleted += count
    if (count < deletionsMax || stopping?.aborted === true) return deleted
  }
}

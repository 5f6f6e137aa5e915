import { z } from 'zod'
import { type Queryable, type Sql, sql } from './statement.ts'

/** The rows of a page: one more than its limit, or fewer than there are. */
export interface ListedRows<T> {
  readonly rows: readonly T[]
  /** Whether more rows follow that did not fit. */
  readonly isCut: boolean
  /** Bytes of all rows of the page as text, also of those that did not fit: PostgreSQL has read them. */
  readonly bytes: number
}

/** A page ends after this many bytes of rows as text, which is also the limit of its JSON. */
const rowsBytesMax = 1_048_576

const Sized = z.looseObject({ pageRows: z.bigint(), pageBytes: z.bigint() })

/**
 * Returns the rows of a page of a list, one more than its limit. PostgreSQL measures the rows and sends them up to a mebibyte and one row: a page of
 * 500 large rows would otherwise be in this process's memory at once, however few of them the response has.
 */
export async function listRows<S extends z.ZodType>(
  db: Queryable,
  row: S,
  limit: number,
  statement: Sql,
): Promise<ListedRows<z.output<S>>> {
  const sized = await db.many(
    Sized,
    sql`
    select * from (
      select page.*, row_number() over () as page_row, count(*) over () as page_rows, sum(octet_length(page::text)) over () as page_bytes,
        sum(octet_length(page::text)) over (rows between unbounded preceding and 1 preceding) as page_bytes_before
      from (${statement} limit ${limit + 1}) as page) as sized
    where page_bytes_before is null or page_bytes_before < ${rowsBytesMax}
    order by page_row`,
  )
  const [first] = sized
  return {
    rows: sized.map((one) => row.parse(one)),
    isCut: first !== undefined && first.pageRows > sized.length,
    bytes: Number(first?.pageBytes ?? 0),
  }
}

import { type Sql, sql } from './db.ts'

/** The ids of a page: those below the cursor, and within a range of time where there is one. */
export interface IdBounds {
  readonly prefix: string
  /** Greatest id that may not be returned; omitted: none. */
  readonly below?: string | undefined
  /** Least id that may be returned; omitted: none. */
  readonly least?: string | undefined
}

/** The part of a list's statement that depends on its cursor and on one filter. */
export interface Seek {
  readonly where: Sql
  readonly order: Sql
}

/** Selects rows of a list, newest first. */
export function newestFirst(id: Sql, { below, least }: IdBounds): Seek {
  return {
    where: sql`${least === undefined ? sql`true` : sql`${id} >= ${least}`} and ${below === undefined ? sql`true` : sql`${id} < ${below}`}`,
    order: sql`${id} desc`,
  }
}

/**
 * Selects rows with this value in a column, newest first. It compares the column and the id as a pair and orders by both, so that no other index
 * than that on the column and then the id gives the order: with `column = value` a general plan may read the list of all rows for a rare value.
 */
export function newestOf(column: Sql, value: string, id: Sql, { prefix, below, least }: IdBounds): Seek {
  // Each id is above its prefix and below the prefix with a letter that no id begins with.
  return {
    where: sql`(${column}, ${id}) >= (${value}, ${least ?? `${prefix}_`}) and (${column}, ${id}) < (${value}, ${below ?? `${prefix}_z`})`,
    order: sql`${column} desc, ${id} desc`,
  }
}

/** Returns the filters that were given, in their order. */
export function givenOf(filters: readonly (readonly [column: Sql, value: string | undefined])[]): [Sql, string][] {
  return filters.flatMap(([column, value]) => (value === undefined ? [] : [[column, value]]))
}

/** Returns the condition that all of these are true. */
export function conjunction(conditions: readonly Sql[]): Sql {
  return conditions.reduce((all, one) => sql`${all} and ${one}`, sql`true`)
}

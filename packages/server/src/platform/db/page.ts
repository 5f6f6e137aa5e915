import { newTypeId, parseTypeId } from '@purser/protocol'
import { instantOf } from '../clock.ts'
import type { Tenant } from '../tenant.ts'
import type { MetadataMember } from '../wire.ts'
import { type Sql, sql } from './db.ts'

export { type ListedRows, listRows } from './listed-rows.ts'

/** The ids of a page: those below the cursor, and within a range of time where there is one. */
export interface IdBounds {
  /** Of ids without both bounds. */
  readonly prefix?: string
  /** Greatest id that may not be returned; omitted: none. */
  readonly below?: string | undefined
  /** Least id that may be returned; omitted: none. */
  readonly least?: string | undefined
  /** Whether the table is partitioned by its ids. */
  readonly hasPartitions?: boolean
}

/** A period of time; its end is exclusive. */
export interface Period {
  readonly from?: Date | undefined
  readonly to?: Date | undefined
}

/** Milliseconds within which a row gets its id and its time. */
export const idLagMsMax = 60_000

/** Returns the least id of a kind made at that Unix time in milliseconds; times before 1970 count as 1970. */
export function firstIdAt(prefix: string, unixMs: number): string {
  return newTypeId(prefix, Math.min(Math.max(unixMs, 0), 2 ** 48 - 1), new Uint8Array(10))
}

/** Returns when an id was made; undefined if it is none. */
export function timeOfId(id: string): Date | undefined {
  const bytes = parseTypeId(id)?.bytes
  return bytes && instantOf(Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0) >> 16n))
}

/** Returns the bounds of ids for a page of a period. They are a minute wider at each end, because `within` compares the exact times. */
export function boundsOf(prefix: string, { from, to }: Period, after: string | undefined): IdBounds {
  const end = to && firstIdAt(prefix, to.getTime() + idLagMsMax)
  const below = after === undefined || (end !== undefined && end < after) ? end : after
  return { prefix, below, least: from && firstIdAt(prefix, from.getTime() - idLagMsMax) }
}

/**
 * Returns `id = …` for a partitioned table, in a form that keeps one plan for all ids: PostgreSQL does not evaluate `concat` while it plans, so it
 * finds the partition at execution. With a plain parameter it would plan each statement anew, which takes five times as long. Compare other
 * columns with `is not distinct from`, which uses no index: a plan of a month that looked empty may otherwise read all rows of a tenant, or all
 * open ones.
 */
export function idIs(value: string): Sql {
  return sql`id = concat(${value}::text)`
}

/** Returns the condition that an id of a table with partitions is one of these, with one plan as `idIs`; the bounds find the partitions. */
export function idIn(id: Sql, ids: readonly string[]): Sql {
  const sorted = ids.toSorted()
  return sql`${id} = any(array(select unnest(${ids}::text[]))) and ${id} >= concat(${sorted[0] ?? ''}::text) and ${id} <= concat(${sorted.at(-1) ?? ''}::text)`
}

/**
 * Returns the condition that an id is after the cursor of a list, newest first. Without a cursor it is `true`, so that the cached plan with a cursor
 * still uses the index from the cursor on.
 */
export function isBelow(id: Sql, after: string | undefined): Sql {
  return after === undefined ? sql`true` : sql`${id} < ${after}`
}

/** Returns the condition that a time is within a period. */
export function within(time: Sql, { from, to }: Period): Sql {
  return conjunction([
    ...(from === undefined ? [] : [sql`${time} >= ${from}`]),
    ...(to === undefined ? [] : [sql`${time} < ${to}`]),
  ])
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
export function newestOf(column: Sql, value: string, id: Sql, bounds: IdBounds): Seek {
  const { prefix, below, least, hasPartitions = false } = bounds
  // `select` hides the value from the planner, which would otherwise expect no row between two equal bounds and sort all partitions.
  const end = hasPartitions ? sql`(select ${value}::text)` : sql`${value}`
  // Each id is above its prefix and below the prefix with a letter that no id begins with.
  return {
    where: sql`(${column}, ${id}) >= (${value}, ${least ?? `${prefix}_`}) and (${column}, ${id}) < (${end}, ${below ?? `${prefix}_z`})`,
    order: sql`${column} desc, ${id} desc`,
  }
}

/** Selects rows that match all given filters, newest first: by the index of the first filter, or by that of the ids if there is none. */
export function filtered(
  filters: readonly (readonly [column: Sql, value: string | undefined])[],
  id: Sql,
  bounds: IdBounds,
): Seek {
  const [first, ...rest] = givenOf(filters)
  const { where, order } = first === undefined ? newestFirst(id, bounds) : newestOf(first[0], first[1], id, bounds)
  return { where: conjunction([where, ...rest.map(([column, value]) => sql`${column} = ${value}`)]), order }
}

interface WithMetadata {
  readonly from: Sql
  /** The column that the list is ordered by. */
  readonly id: Sql
  /** The filter, which has to be the list's first one, or none. */
  readonly filters: readonly (readonly [column: Sql, value: string])[]
}

/** Selects a table's rows with a member in their metadata, by the primary key of `metadata_values`; all rows if none is given. */
export function withMetadata(table: Sql, tenant: Tenant, member: MetadataMember | undefined): WithMetadata {
  if (member === undefined) return { from: table, id: sql`id`, filters: [] }
  const found = sql`select row_id, value as metadata_value from metadata_values
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and key = ${member.key}`
  return {
    // Not a join, whose plan may begin with the table: each row that was found is looked up, in the order of the list.
    from: sql`(${found}) as found cross join lateral (select * from ${table} where id = row_id offset 0) as listed`,
    id: sql`row_id`,
    filters: [[sql`metadata_value`, member.value]],
  }
}

/** Returns the filters that were given, in their order. */
function givenOf(filters: readonly (readonly [column: Sql, value: string | undefined])[]): [Sql, string][] {
  return filters.flatMap(([column, value]) => (value === undefined ? [] : [[column, value]]))
}

/** Returns the condition that all of these are true. */
export function conjunction(conditions: readonly Sql[]): Sql {
  return conditions.reduce((all, one) => sql`${all} and ${one}`, sql`true`)
}

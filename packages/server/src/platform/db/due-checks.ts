import { z } from 'zod'
import { anyLength, type Queryable, type Sql, sql } from './db.ts'

export interface DueChecks {
  /**
   * Has `id`, `network`, `organisation_id` and `check_at`, and partial indexes on rows whose `check_at` is set. A query may name other columns or
   * expressions so: `network` is whatever rows wait for.
   */
  readonly table: Sql
  readonly network: string
  readonly now: Sql
  readonly most: number
  readonly cursors: DueCursors
}

/** For each network, the last organisation that the previous look-up reached; the next one continues after it. The caller stores it, initially empty. */
export type DueCursors = Map<string, string>

/** Most organisations of one look-up. The next one goes on behind them. */
const organisationsMax = 200

/**
 * Condition: whether a query returns a value for any of the networks. It names the network `n.network`, and is ordered and limited to one row, so
 * that an index is read whatever the statistics say.
 */
export function onAnyOf(networks: readonly string[], query: Sql): Sql {
  return sql`exists (select from unnest(${anyLength(networks)}) as n (network) where (${query}) is not null)`
}

const IdRow = z.object({ id: z.string() })
const FairRow = z.object({ id: z.string().nullable(), last: z.string().nullable(), isCut: z.boolean() })

/**
 * Returns the ids of at most `most` due rows. If more are due, each organisation first gets an equal share, so that nobody waits longer because of
 * another's backlog, and `cursors` is moved on behind those that got one. The oldest due rows get the places that shares leave. Costs one index look-up while nothing is due;
 * what it reads is bounded by `most`, whatever the number of organisations and rows.
 */
export async function listDueChecks(db: Queryable, due: DueChecks): Promise<readonly string[]> {
  const { table, network, now, most } = due
  // Many rows may be due at the same instant, so the index alone decides which of them are read.
  const first = await db.many(
    IdRow,
    sql`
    select id::text as id from (
      select t.id, t.check_at from ${table} t where t.network = ${network} and t.check_at is not null and t.check_at <= ${now}
      order by t.check_at limit ${most + 1}) as oldest
    order by check_at, id`,
  )
  const oldest = first.map(({ id }) => id)
  if (oldest.length <= most) return oldest
  return [...new Set([...(await listFairly(db, due)), ...oldest])].slice(0, most)
}

/**
 * The shares of organisations: the first of each, then the second of each, and so on. A look-up ends at the organisation that takes the last place, so
 * that all that it reaches get one.
 */
async function listFairly(
  db: Queryable,
  { table, network, now, most, cursors }: DueChecks,
): Promise<readonly string[]> {
  const next = (after: Sql): Sql => sql`
    select t.organisation_id from ${table} t where t.network = ${network} and t.check_at is not null and t.organisation_id > ${after}
    order by t.organisation_id limit 1`
  const isDue = (owner: Sql): Sql => sql`
    select (select t.check_at from ${table} t
      where t.network = ${network} and t.organisation_id = ${owner} and t.check_at is not null and t.check_at <= ${now}
      order by t.check_at limit 1) is not null as is_due`
  const rows = await db.many(
    FairRow,
    sql`
    with recursive organisations as (
      select n.organisation_id, d.is_due, 1 as place, d.is_due::integer as waiting
      from (${next(sql`${cursors.get(network) ?? ''}`)}) n cross join lateral (${isDue(sql`n.organisation_id`)}) d
      union all
      select n.organisation_id, d.is_due, o.place + 1, o.waiting + d.is_due::integer
      from organisations o cross join lateral (${next(sql`o.organisation_id`)}) n cross join lateral (${isDue(sql`n.organisation_id`)}) d
      where o.place < ${organisationsMax} and o.waiting < ${most}
    ), waiting as materialized (
      select organisation_id from organisations where is_due
    ), due as (
      select own.id, own.check_at, row_number() over (partition by w.organisation_id order by own.check_at, own.id) as turn
      from waiting w cross join lateral (
        select t.id, t.check_at from ${table} t
        where t.network = ${network} and t.organisation_id = w.organisation_id and t.check_at is not null and t.check_at <= ${now}
        order by t.check_at limit (select ceil(${most}::float8 / greatest(count(*), 1))::bigint from waiting)) own
    )
    select chosen.id::text as id, reached.last, reached.is_cut
    from (
      select max(organisation_id) as last, count(*) >= ${organisationsMax} or count(*) filter (where is_due) >= ${most} as is_cut from organisations) reached
    left join (select * from due order by turn, check_at, id limit ${most}) chosen on true
    order by chosen.turn, chosen.check_at, chosen.id`,
  )
  const [reached] = rows
  cursors.set(network, reached?.isCut === true ? (reached.last ?? '') : '')
  return rows.flatMap(({ id }) => id ?? [])
}

import { z } from 'zod'
import { type Queryable, type Sql, sql } from '../../platform/db/db.ts'
import { shareOwnerSql } from './store.ts'

const OwnerRow = z.object({ id: z.string(), shareOwner: z.string() })

/** Returns the rows, in their order, each with the owner of its organisation's share. Reads nothing where there are none. */
export async function withShareOwners<R extends { readonly organisationId: string }>(
  db: Queryable,
  rows: readonly R[],
): Promise<readonly (R & { readonly shareOwner: string })[]> {
  if (rows.length === 0) return []
  const organisationIds = [...new Set(rows.map(({ organisationId }) => organisationId))]
  const found = await db.many(
    OwnerRow,
    sql`
    select given.id, coalesce(${shareOwnerSql(sql`given.id`)}, given.id) as share_owner from unnest(${organisationIds}::text[]) as given (id)`,
  )
  const owners = new Map(found.map(({ id, shareOwner }) => [id, shareOwner]))
  return rows.map((row) => ({ ...row, shareOwner: owners.get(row.organisationId) ?? row.organisationId }))
}

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

/** Most organisations that one look-up visits, due or not. The next one goes on behind them. */
const organisationsMax = 200

const IdRow = z.object({ id: z.string() })
const FairRow = z.object({ id: z.string().nullable(), last: z.string().nullable(), isCut: z.boolean() })

/**
 * Returns the ids of at most `most` due rows. If more are due, each share owner first gets an equal share, so that nobody waits longer because of
 * another's backlog, and `cursors` is moved on behind the organisations of those that got one. The oldest due rows get the slots that shares leave.
 * Costs one index look-up while nothing is due; what it reads is bounded by `most`, whatever the number of organisations and rows.
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
 * The shares of owners: the first of each, then the second of each, and so on. A look-up ends at the organisation whose owner takes the last slot, so
 * that all owners that it reaches get one. An owner's organisations get equal parts of its share, in an order that each look-up draws anew: where the
 * share is smaller than their number, none of them always comes last.
 */
async function listFairly(
  db: Queryable,
  { table, network, now, most, cursors }: DueChecks,
): Promise<readonly string[]> {
  const next = (after: Sql): Sql => sql`
    select t.organisation_id from ${table} t where t.network = ${network} and t.check_at is not null and t.organisation_id > ${after}
    order by t.organisation_id limit 1`
  // "offset 0": otherwise PostgreSQL inserts the expression, and so its reads, where each of its values is used.
  const ownerIfDue = (organisationId: Sql): Sql => sql`
    select case when (select t.check_at from ${table} t
      where t.network = ${network} and t.organisation_id = ${organisationId} and t.check_at is not null and t.check_at <= ${now}
      order by t.check_at limit 1) is not null then coalesce(${shareOwnerSql(organisationId)}, ${organisationId}) end as share_owner offset 0`
  const rows = await db.many(
    FairRow,
    sql`
    with recursive visited as (
      select n.organisation_id, d.share_owner, 1 as position, array_remove(array[d.share_owner], null) as owners
      from (${next(sql`${cursors.get(network) ?? ''}`)}) n cross join lateral (${ownerIfDue(sql`n.organisation_id`)}) d
      union all
      select n.organisation_id, d.share_owner, o.position + 1,
        case when d.share_owner is null or d.share_owner = any (o.owners) then o.owners else o.owners || d.share_owner end
      from visited o cross join lateral (${next(sql`o.organisation_id`)}) n cross join lateral (${ownerIfDue(sql`n.organisation_id`)}) d
      where o.position < ${organisationsMax} and cardinality(o.owners) < ${most}
    ), reached as materialized (
      select max(organisation_id) as last, count(*) >= ${organisationsMax} or coalesce(max(cardinality(owners)), 0) >= ${most} as is_cut,
        ceil(${most}::float8 / greatest(max(cardinality(owners)), 1)) as share
      from visited
    ), waiting as materialized (
      select organisation_id, share_owner, random() as drawn, count(*) over (partition by share_owner) as siblings
      from visited where share_owner is not null
    ), due as (
      select own.id, own.check_at, w.share_owner, w.drawn, row_number() over (partition by w.organisation_id order by own.check_at, own.id) as rank
      from waiting w cross join lateral (
        select t.id, t.check_at from ${table} t
        where t.network = ${network} and t.organisation_id = w.organisation_id and t.check_at is not null and t.check_at <= ${now}
        order by t.check_at limit (select ceil(share / w.siblings)::bigint from reached)) own
    ), dealt as (
      select id, check_at, row_number() over (partition by share_owner order by rank, drawn) as rank from due
    )
    select chosen.id::text as id, reached.last, reached.is_cut
    from reached left join (
      select * from dealt where rank <= (select share from reached) order by rank, check_at, id limit ${most}) chosen on true
    order by chosen.rank, chosen.check_at, chosen.id`,
  )
  const [reached] = rows
  cursors.set(network, reached?.isCut === true ? (reached.last ?? '') : '')
  return rows.flatMap(({ id }) => id ?? [])
}

import { z } from 'zod'
import type { Environment, Tenant } from '../../platform/ctx.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { isBelow, type ListedRows, listRows } from '../../platform/db/page.ts'
import { type Id, id } from '../../platform/ids.ts'
import { type RouteFilters, RouteParam } from './schema.ts'

const Params = z.array(RouteParam)

const RouteRow = z.object({
  id: id('reg'),
  host: z.string(),
  method: z.string(),
  routePattern: z.string(),
  headers: Params,
  queryParams: Params,
  bodyParams: Params,
  bodyContentType: z.string().nullable(),
  amount: z.string(),
  protocol: z.enum(['x402', 'mpp']),
  protocols: z.array(z.enum(['x402', 'mpp'])),
  paymentLogId: id('plog').nullable(),
  isPublic: z.boolean(),
  snapshotCount: z.bigint(),
  createdAt: z.date(),
  lastSeenAt: z.date(),
})
export type RouteRow = z.output<typeof RouteRow>

/** The fields that one report of a route has. */
export type ReportedRoute = Omit<RouteRow, 'isPublic' | 'snapshotCount' | 'createdAt' | 'protocols'>

const columns = sql`id, host, method, route_pattern, headers, query_params, body_params, body_content_type, trim_scale(amount)::text as amount,
  protocol, protocols, payment_log_id, is_public, snapshot_count, created_at, last_seen_at`

/** Inserts a route that is reported for the first time; false if it exists, as the unique index decides. */
export async function insertRoute(tx: Tx, tenant: Tenant, seen: ReportedRoute): Promise<boolean> {
  const inserted = await tx.run(sql`
    insert into registry_routes (id, organisation_id, environment, host, method, route_pattern, headers, query_params, body_params,
      body_content_type, amount, protocol, protocols, payment_log_id, snapshot_count, created_at, last_seen_at)
    values (${seen.id}, ${tenant.organisationId}, ${tenant.environment}, ${seen.host}, ${seen.method}, ${seen.routePattern},
      ${JSON.stringify(seen.headers)}, ${JSON.stringify(seen.queryParams)}, ${JSON.stringify(seen.bodyParams)}, ${seen.bodyContentType},
      ${seen.amount}, ${seen.protocol}, ${[seen.protocol]}, ${seen.paymentLogId}, 1, ${seen.lastSeenAt}, ${seen.lastSeenAt})
    on conflict (organisation_id, environment, host, method, route_pattern) do nothing`)
  return inserted === 1
}

/** Locks the route's row until the transaction ends, so that no two reports lose each other's parameters. */
export function lockRoute(
  tx: Tx,
  tenant: Tenant,
  { host, method, routePattern }: Pick<ReportedRoute, 'host' | 'method' | 'routePattern'>,
): Promise<RouteRow | undefined> {
  return tx.maybeOne(
    RouteRow,
    sql`
    select ${columns} from registry_routes
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}
      and host = ${host} and method = ${method} and route_pattern = ${routePattern}
    for update`,
  )
}

/**
 * Public routes are listed by their newest reports, so that a seller that reports its routes all the time would be before all others: a public
 * route moves once an hour. A private one moves once a minute, because the one reported longest ago is the first to be deleted. A report in between
 * changes no indexed column.
 */
const seenAt = ({ lastSeenAt }: ReportedRoute): Sql => sql`
  case when ${lastSeenAt} < last_seen_at + case when is_public then interval '1 hour' else interval '1 minute' end then last_seen_at
    else ${lastSeenAt} end`

/**
 * The place of a route in the list of public ones. It moves at most once an hour, whatever happens in between: a route that was private for a moment
 * would otherwise be before all others. Null until it is first written: until then its place is its last report.
 */
const place = sql`coalesce(listed_at, last_seen_at)`

/** Writes a report over the stored route, and counts it. */
export async function markReported(tx: Tx, tenant: Tenant, seen: ReportedRoute): Promise<void> {
  await tx.run(sql`
    update registry_routes set headers = ${JSON.stringify(seen.headers)}, query_params = ${JSON.stringify(seen.queryParams)},
      body_params = ${JSON.stringify(seen.bodyParams)}, body_content_type = ${seen.bodyContentType}, amount = ${seen.amount},
      protocol = ${seen.protocol}, payment_log_id = ${seen.paymentLogId}, last_seen_at = ${seenAt(seen)},
      listed_at = case when is_public and ${seen.lastSeenAt} >= ${place} + interval '1 hour' then ${seen.lastSeenAt} else listed_at end,
      protocols = case when ${seen.protocol} = any(protocols) then protocols else protocols || ${seen.protocol}::text end,
      snapshot_count = snapshot_count + 1
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${seen.id}`)
}

/** Deletes routes above this number, private ones before public ones, and those reported longest ago first. Skips locked rows. */
export async function forgetOldest(tx: Tx, tenant: Tenant, routesMax: number): Promise<void> {
  await tx.run(sql`
    delete from registry_routes
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = any(array(
      select id from registry_routes where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = any(array(
        select id from registry_routes where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}
        order by is_public desc, last_seen_at desc, id desc limit 100 offset ${routesMax}))
      for update skip locked))`)
}

export function findRoute(db: Queryable, tenant: Tenant, routeId: Id<'reg'>): Promise<RouteRow | undefined> {
  return db.maybeOne(
    RouteRow,
    sql`
    select ${columns} from registry_routes
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${routeId}`,
  )
}

/** Makes the route public or private; undefined if it does not exist. */
export function setPublic(
  tx: Tx,
  tenant: Tenant,
  change: { readonly id: Id<'reg'>; readonly isPublic: boolean },
): Promise<RouteRow | undefined> {
  return tx.maybeOne(
    RouteRow,
    sql`
    update registry_routes set is_public = ${change.isPublic},
      listed_at = case when ${change.isPublic} and last_seen_at >= ${place} + interval '1 hour' then last_seen_at else ${place} end
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${change.id}
    returning ${columns}`,
  )
}

/** Returns routes, newest first, one more than the limit. */
export function listRoutes(
  db: Queryable,
  tenant: Tenant,
  filters: RouteFilters,
  page: { readonly limit: number; readonly after: string | undefined },
): Promise<ListedRows<RouteRow>> {
  return listRows(
    db,
    RouteRow,
    page.limit,
    sql`
    select ${columns} from registry_routes
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and ${matching(filters)}
      and ${isBelow(sql`id`, page.after)}
    order by id desc`,
  )
}

/** Most routes of one document. */
const soldRoutesMax = 100

const withoutExamples = (column: Sql): Sql => sql`
  (select coalesce(jsonb_agg(given.param - 'example' order by given.place), '[]') from jsonb_array_elements(${column}) with ordinality as given (param, place))`

/** The columns of a route; its parameters without their examples, which would be most of its bytes. */
const soldColumns = sql`id, host, method, route_pattern, ${withoutExamples(sql`headers`)} as headers,
  ${withoutExamples(sql`query_params`)} as query_params, ${withoutExamples(sql`body_params`)} as body_params, body_content_type,
  trim_scale(amount)::text as amount, protocol, protocols, payment_log_id, is_public, snapshot_count, created_at, last_seen_at`

/** Returns the first hundred routes that an organisation sells in public at a host, by path; none if it is suspended. */
export function listSoldRoutes(db: Queryable, tenant: Tenant, host: string): Promise<RouteRow[]> {
  return db.many(
    RouteRow,
    sql`
    select ${soldColumns} from registry_routes
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and host = ${host} and is_public and ${onSale}
    order by route_pattern, method limit ${soldRoutesMax}`,
  )
}

function matching(filters: RouteFilters): Sql {
  const { host = null, protocol = null, maxAmount = null, q = null } = filters
  return sql`(${host}::text is null or host = ${host}) and (${protocol}::text is null or ${protocol} = any(protocols))
    and (${maxAmount}::numeric is null or amount <= ${maxAmount}::numeric)
    and (${q}::text is null or strpos(lower(method || ' ' || host || route_pattern), lower(${q})) > 0)`
}

const PublicRow = RouteRow.extend({ organisationId: id('org') })
export type PublicRow = z.output<typeof PublicRow>

/** An organisation that is suspended sells nothing, so its routes are not shown to others. */
const onSale = sql`not exists (
  select from organisations where organisations.id = registry_routes.organisation_id and organisations.suspended_at is not null)`

/**
 * Returns the routes that all organisations have made public in an environment, by their places. If two organisations
 * name the same host and route, both are listed: neither replaces the other.
 */
export function listPublicRoutes(
  db: Queryable,
  environment: Environment,
  page: { readonly limit: number; readonly offset: number },
): Promise<PublicRow[]> {
  return db.many(
    PublicRow,
    sql`
    select ${soldColumns}, organisation_id from registry_routes where environment = ${environment} and is_public and ${onSale}
    order by ${place} desc, id desc limit ${page.limit} offset ${page.offset}`,
  )
}

/** Returns the number of public routes, at most `most`: it reads no more of them. */
export async function countPublicRoutes(db: Queryable, environment: Environment, most: number): Promise<number> {
  const row = await db.one(
    z.object({ count: z.bigint() }),
    sql`
    select count(*) as count from (
      select from registry_routes where environment = ${environment} and is_public and ${onSale}
      order by ${place} desc, id desc limit ${most}) as counted`,
  )
  return Number(row.count)
}

import { z } from 'zod'
import type { Environment, Tenant } from '../../platform/ctx.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
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

/** What one look at a route says of it. */
export type SeenRoute = Omit<RouteRow, 'isPublic' | 'snapshotCount' | 'createdAt' | 'protocols'>

const columns = sql`id, host, method, route_pattern, headers, query_params, body_params, body_content_type, trim_scale(amount)::text as amount,
  protocol, protocols, payment_log_id, is_public, snapshot_count, created_at, last_seen_at`

/** Registers a route that is seen for the first time; false when it is there already, as the unique index decides. */
export async function insertRoute(tx: Tx, tenant: Tenant, seen: SeenRoute): Promise<boolean> {
  const inserted = await tx.run(sql`
    insert into registry_routes (id, organisation_id, environment, host, method, route_pattern, headers, query_params, body_params,
      body_content_type, amount, protocol, protocols, payment_log_id, snapshot_count, created_at, last_seen_at)
    values (${seen.id}, ${tenant.organisationId}, ${tenant.environment}, ${seen.host}, ${seen.method}, ${seen.routePattern},
      ${JSON.stringify(seen.headers)}, ${JSON.stringify(seen.queryParams)}, ${JSON.stringify(seen.bodyParams)}, ${seen.bodyContentType},
      ${seen.amount}, ${seen.protocol}, ${[seen.protocol]}, ${seen.paymentLogId}, 1, ${seen.lastSeenAt}, ${seen.lastSeenAt})
    on conflict (organisation_id, environment, host, method, route_pattern) do nothing`)
  return inserted === 1
}

/** Holds the route's row until the transaction ends, so that no two looks at it lose what the other saw. */
export function lockRoute(
  tx: Tx,
  tenant: Tenant,
  { host, method, routePattern }: Pick<SeenRoute, 'host' | 'method' | 'routePattern'>,
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

/** Writes what was seen now over what was known, and counts the look. */
export async function markSeen(tx: Tx, tenant: Tenant, seen: SeenRoute): Promise<void> {
  await tx.run(sql`
    update registry_routes set headers = ${JSON.stringify(seen.headers)}, query_params = ${JSON.stringify(seen.queryParams)},
      body_params = ${JSON.stringify(seen.bodyParams)}, body_content_type = ${seen.bodyContentType}, amount = ${seen.amount},
      protocol = ${seen.protocol}, payment_log_id = ${seen.paymentLogId}, last_seen_at = greatest(last_seen_at, ${seen.lastSeenAt}),
      protocols = case when ${seen.protocol} = any(protocols) then protocols else protocols || ${seen.protocol}::text end,
      snapshot_count = snapshot_count + 1
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${seen.id}`)
}

/** Forgets what is beyond so many routes, those that are not public first, the longest unseen before others. Waits for nobody. */
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

/** Shows the route to other organisations, or hides it; undefined when there is none. */
export function setPublic(
  tx: Tx,
  tenant: Tenant,
  change: { readonly id: Id<'reg'>; readonly isPublic: boolean },
): Promise<RouteRow | undefined> {
  return tx.maybeOne(
    RouteRow,
    sql`
    update registry_routes set is_public = ${change.isPublic}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${change.id}
    returning ${columns}`,
  )
}

/** Routes, newest first, one more than the limit. */
export function listRoutes(
  db: Queryable,
  tenant: Tenant,
  filters: RouteFilters,
  page: { readonly limit: number; readonly after: string | undefined },
): Promise<RouteRow[]> {
  return db.many(
    RouteRow,
    sql`
    select ${columns} from registry_routes
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and ${matching(filters)}
      and (${page.after ?? null}::text is null or id < ${page.after ?? null})
    order by id desc limit ${page.limit + 1}`,
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

/**
 * What every organisation has made public in an environment, the latest seen first. Of two that name the same host and route both are
 * there: nobody's word takes the place of another's.
 */
export function listPublicRoutes(
  db: Queryable,
  environment: Environment,
  page: { readonly limit: number; readonly offset: number },
): Promise<PublicRow[]> {
  return db.many(
    PublicRow,
    sql`
    select ${columns}, organisation_id from registry_routes where environment = ${environment} and is_public
    order by last_seen_at desc, id desc limit ${page.limit} offset ${page.offset}`,
  )
}

export async function countPublicRoutes(db: Queryable, environment: Environment): Promise<number> {
  const row = await db.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from registry_routes where environment = ${environment} and is_public`,
  )
  return Number(row.count)
}

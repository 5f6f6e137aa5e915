import type { Environment } from '../../platform/ctx.ts'
import type { Queryable } from '../../platform/db/db.ts'
import type { Operation } from '../../platform/operation.ts'
import { type Deps, operation } from './ports.ts'
import type { RouteParam } from './schema.ts'
import * as schema from './schema.ts'
import { acceptSnapshot, fail, failBody, getRoute, pageOfRoutes, publishRoute } from './snapshots.ts'
import { countPublicRoutes, listPublicRoutes, type PublicRow } from './store.ts'

export const registryOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'registry.snapshots.create',
    needs: { role: 'member', scope: 'payments' },
    method: 'POST',
    path: '/registry/snapshots',
    summary: 'Register a paid route as it was seen; the middlewares send this by themselves.',
    description:
      'One route per host, method and pattern, in which whatever looks like an identifier is {id}: seen again, it is brought up to date. Examples of what is named like a credential are dropped.',
    input: schema.Snapshot,
    output: schema.SnapshotAccepted,
    status: 202,
    errors: failBody.table,
    run: (ctx, { body }) => acceptSnapshot(ctx, body),
  }),
  operation({
    id: 'registry.routes.list',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/registry/routes',
    summary: 'List your paid routes that were seen, newest first.',
    description: 'The routes of your organisation, as they were last reported.',
    query: schema.RouteQuery,
    output: schema.RegistryRoute,
    list: true,
    run: (ctx, { query }) => pageOfRoutes(ctx, query),
  }),
  operation({
    id: 'registry.routes.get',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/registry/routes/{id}',
    summary: 'Get one paid route.',
    description: 'With its price and parameters, as they were last reported.',
    params: schema.RouteParamsInPath,
    output: schema.RegistryRoute,
    errors: fail.table,
    run: (ctx, { params }) => getRoute(ctx, params.id),
  }),
  operation({
    id: 'registry.routes.update',
    needs: { role: 'member', scope: 'payments' },
    method: 'PATCH',
    path: '/registry/routes/{id}',
    summary: 'Make a paid route public, or private again.',
    description:
      'A public route is listed by GET /facilitator/discovery/resources for every organisation of the environment: your organisation’s id, address, method, price, protocols, and the names of its parameters. Private by default.',
    params: schema.RouteParamsInPath,
    input: schema.RouteChange,
    output: schema.RegistryRoute,
    errors: fail.table,
    run: (ctx, { params, body }) => publishRoute(ctx, params.id, body.isPublic),
  }),
]

/** A public route as every organization sees it: its publisher, and the names and types of its parameters, without examples. */
export interface PublicRoute {
  readonly url: string
  readonly lastSeenAt: Date
  readonly details: Readonly<Record<string, unknown>>
}

/** Returns a page of the routes that organizations have made public in an environment, and their total number. */
export async function publicRoutes(
  db: Queryable,
  environment: Environment,
  page: { readonly limit: number; readonly offset: number },
): Promise<{ readonly routes: readonly PublicRoute[]; readonly total: number }> {
  const [rows, total] = await Promise.all([listPublicRoutes(db, environment, page), countPublicRoutes(db, environment)])
  return { routes: rows.map(asPublic), total }
}

function asPublic(row: PublicRow): PublicRoute {
  const { organisationId: publisher, method, amount, protocols, bodyContentType } = row
  const input = {
    headers: row.headers.map(withoutExample),
    queryParams: row.queryParams.map(withoutExample),
    bodyParams: row.bodyParams.map(withoutExample),
    bodyContentType,
  }
  const details = { metadata: { publisher, method, price: { amount, currency: 'USD' }, protocols, input } }
  return { url: `https://${row.host}${row.routePattern}`, lastSeenAt: row.lastSeenAt, details }
}

function withoutExample({ name, type, required }: RouteParam): RouteParam {
  return { name, type, required }
}

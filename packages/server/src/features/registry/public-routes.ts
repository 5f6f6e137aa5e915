import type { Environment } from '../../platform/ctx.ts'
import type { Queryable } from '../../platform/db/db.ts'
import type { RouteParam } from './schema.ts'
import { countPublicRoutes, listPublicRoutes, type PublicRow } from './store.ts'

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

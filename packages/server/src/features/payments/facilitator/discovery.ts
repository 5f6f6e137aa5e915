import type { z } from 'zod'
import type { Ctx, Environment } from '../../../platform/ctx.ts'
import type { Queryable } from '../../../platform/db/db.ts'
import { countResources, listResources, type ResourceRow } from './discovery-store.ts'
import type { DiscoveredResources, DiscoveryQuery } from './schema.ts'

type Item = z.input<typeof DiscoveredResources>['items'][number]

/** A paid route that its organisation shows to everybody, and how to list it. */
interface ShownRoute {
  readonly url: string
  readonly lastSeenAt: Date
  readonly details: Readonly<Record<string, unknown>>
}

/** A page of the routes that organisations have made public in an environment, and how many there are in all. */
export type PublicRoutes = (
  db: Queryable,
  environment: Environment,
  page: { readonly limit: number; readonly offset: number },
) => Promise<{ readonly routes: readonly ShownRoute[]; readonly total: number }>

/**
 * What has been declared by being paid for, in the caller's environment, whoever sells it, and after it what organisations have made public.
 * Source: x402 specification v2 section 8.
 */
export async function discoverResources(ctx: Ctx, query: DiscoveryQuery): Promise<z.input<typeof DiscoveredResources>> {
  const { environment } = ctx.tenant
  const { limit, offset } = query
  const [rows, declared] = await Promise.all([
    listResources(ctx.db, environment, query),
    countResources(ctx.db, environment, query),
  ])
  const rest = { limit: limit - rows.length, offset: Math.max(0, offset - declared) }
  const shown = await shownRoutes(ctx, query, rest)
  const items = [...rows.map(asItem), ...shown.routes.map(asShownItem)]
  return { x402Version: 2, items, pagination: { limit, offset, total: declared + shown.total } }
}

/** A public route says nothing of accounts, schemes, networks or extensions, so that a filter on one of them leaves it out. */
async function shownRoutes(ctx: Ctx, query: DiscoveryQuery, page: { readonly limit: number; readonly offset: number }) {
  const { type = 'http', payTo, scheme, network, extensions } = query
  const isNarrowed = [payTo, scheme, network, extensions].some((filter) => filter !== undefined)
  if (ctx.publicRoutes === undefined || type !== 'http' || isNarrowed) return { routes: [], total: 0 }
  return ctx.publicRoutes(ctx.db, ctx.tenant.environment, page)
}

function asItem({ resource, type, x402Version, accepts, details, updatedAt }: ResourceRow): Item {
  return { ...details, resource, type, x402Version, accepts, lastUpdated: updatedAt.toISOString() }
}

/** What a payment must be is said by the route's own 402: the price is known here, the accounts are not. */
function asShownItem({ url, lastSeenAt, details }: ShownRoute): Item {
  return { ...details, resource: url, type: 'http', x402Version: 2, accepts: [], lastUpdated: lastSeenAt.toISOString() }
}

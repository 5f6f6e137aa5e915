import type { z } from 'zod'
import type { Ctx, PublicRoute } from '../ports.ts'
import { countResources, listResources, type ResourceRow } from './discovery-store.ts'
import type { DiscoveredResources, DiscoveryQuery } from './schema.ts'

type Item = z.input<typeof DiscoveredResources>['items'][number]

/**
 * Returns the resources that payments declared in the caller's environment, of all sellers, and after them the routes that
 * organizations made public.
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
  const shown = await publicRoutesFor(ctx, query, rest)
  const items = [...rows.map(asItem), ...shown.routes.map(publicItemOf)]
  return { x402Version: 2, items, pagination: { limit, offset, total: declared + shown.total } }
}

/**
 * Returns a page of public routes. They have no accounts, schemes, networks or extensions, so a filter on one of these excludes
 * them.
 */
async function publicRoutesFor(
  ctx: Ctx,
  query: DiscoveryQuery,
  page: { readonly limit: number; readonly offset: number },
) {
  const { type = 'http', payTo, scheme, network, extensions } = query
  const isNarrowed = [payTo, scheme, network, extensions].some((filter) => filter !== undefined)
  if (ctx.publicRoutes === undefined || type !== 'http' || isNarrowed) return { routes: [], total: 0 }
  return ctx.publicRoutes(ctx.db, ctx.tenant.environment, page)
}

function asItem({ resource, type, x402Version, accepts, details, updatedAt }: ResourceRow): Item {
  return { ...details, resource, type, x402Version, accepts, lastUpdated: updatedAt.toISOString() }
}

/**
 * Returns a public route as a discovery item without payment options. Its price is known here but its accounts are not; the
 * route's own 402 states them.
 */
function publicItemOf({ url, lastSeenAt, details }: PublicRoute): Item {
  return { ...details, resource: url, type: 'http', x402Version: 2, accepts: [], lastUpdated: lastSeenAt.toISOString() }
}

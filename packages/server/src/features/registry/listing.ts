import type { Id } from '../../platform/ids.ts'
import type { Page } from '../../platform/operation.ts'
import { openCursor, pageOf } from '../../platform/wire.ts'
import { fail } from './errors.ts'
import type { Ctx } from './ports.ts'
import type { RegistryRoute, RouteQuery } from './schema.ts'
import { findRoute, listRoutes, type RouteRow, setPublic } from './store.ts'

/** Returns a page of the routes of the caller's organization and environment. */
export async function pageOfRoutes(ctx: Ctx, query: RouteQuery): Promise<Page<RegistryRoute>> {
  const { limit, cursor, ...filters } = query
  const rows = await listRoutes(ctx.db, ctx.tenant, filters, { limit, after: openCursor(cursor) })
  const page = pageOf(rows, limit, (row) => row.id)
  return { items: page.items.map(asRoute), next: page.next }
}

export async function getRoute(ctx: Ctx, routeId: Id<'reg'>): Promise<RegistryRoute> {
  const row = await findRoute(ctx.db, ctx.tenant, routeId)
  if (row === undefined) throw fail('registry-route-not-found')
  return asRoute(row)
}

/** Makes a route public to every organization of the environment through the facilitator's discovery, or private again. */
export function publishRoute(ctx: Ctx, routeId: Id<'reg'>, isPublic: boolean): Promise<RegistryRoute> {
  return ctx.db.tx(async (tx) => {
    const row = await setPublic(tx, ctx.tenant, { id: routeId, isPublic })
    if (row === undefined) throw fail('registry-route-not-found')
    await ctx.audit(tx, { action: 'registry.routes.update', target: routeId, details: { isPublic } })
    return asRoute(row)
  })
}

function asRoute(row: RouteRow): RegistryRoute {
  return { ...row, snapshotCount: Number(row.snapshotCount) }
}

import type { z } from 'zod'
import type { Ctx } from '../../../platform/ctx.ts'
import { countResources, listResources, type ResourceRow } from './discovery-store.ts'
import type { DiscoveredResources, DiscoveryQuery } from './schema.ts'

/** What has been declared by being paid for, in the caller's environment, whoever sells it. Source: x402 specification v2 section 8. */
export async function discoverResources(ctx: Ctx, query: DiscoveryQuery): Promise<z.input<typeof DiscoveredResources>> {
  const { environment } = ctx.tenant
  const [rows, total] = await Promise.all([
    listResources(ctx.db, environment, query),
    countResources(ctx.db, environment, query),
  ])
  return { x402Version: 2, items: rows.map(asItem), pagination: { limit: query.limit, offset: query.offset, total } }
}

function asItem({ resource, type, x402Version, accepts, details, updatedAt }: ResourceRow) {
  return { ...details, resource, type, x402Version, accepts, lastUpdated: updatedAt.toISOString() }
}

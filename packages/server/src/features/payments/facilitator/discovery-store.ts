import { z } from 'zod'
import type { Environment, Tenant } from '../../../platform/ctx.ts'
import { type Queryable, type Sql, sql } from '../../../platform/db/db.ts'
import type { Declaration } from './declaration.ts'
import type { DiscoveryQuery } from './schema.ts'

const JsonRecord = z.record(z.string(), z.unknown())

const ResourceRow = z.object({
  resource: z.string(),
  type: z.string(),
  x402Version: z.number(),
  accepts: z.array(JsonRecord),
  details: JsonRecord,
  updatedAt: z.date(),
})
export type ResourceRow = z.output<typeof ResourceRow>

const CountRow = z.object({ count: z.bigint() })

/**
 * Lists a resource or updates its entry. The offer just paid comes first and replaces an older one of the same scheme, network,
 * token and account; at most 16 are kept. Returns false if the organization has reached its limit.
 */
export async function upsertResource(
  db: Queryable,
  tenant: Tenant,
  listing: Declaration & { readonly now: Date; readonly resourcesMax: number },
): Promise<boolean> {
  const { resource, type, operation, x402Version, accepts, details, now, resourcesMax } = listing
  const { organisationId, environment } = tenant
  const listed = await db.run(sql`
    insert into discovered_resources (organisation_id, environment, resource, type, operation, x402_version, accepts, details, updated_at)
    select ${organisationId}, ${environment}, ${resource}, ${type}, ${operation}, ${x402Version}::smallint,
      ${JSON.stringify([accepts])}::jsonb, ${JSON.stringify(details)}::jsonb, ${now}::timestamptz
    where (select count(*) from discovered_resources where organisation_id = ${organisationId} and environment = ${environment}) < ${resourcesMax}::int
      or exists (select from discovered_resources where organisation_id = ${organisationId} and environment = ${environment}
        and resource = ${resource} and type = ${type} and operation = ${operation})
    on conflict (organisation_id, environment, resource, type, operation) do update set
      x402_version = excluded.x402_version, details = excluded.details, updated_at = excluded.updated_at,
      accepts = excluded.accepts || coalesce((
        select jsonb_agg(kept.offer) from (
          select offer from jsonb_array_elements(discovered_resources.accepts) offer
          where (offer->>'scheme', offer->>'network', lower(offer->>'asset'), lower(offer->>'payTo')) is distinct from
            (excluded.accepts->0->>'scheme', excluded.accepts->0->>'network', lower(excluded.accepts->0->>'asset'), lower(excluded.accepts->0->>'payTo'))
          limit 15) kept), '[]'::jsonb)`)
  return listed === 1
}

/** Returns the resources of all organizations in an environment, newest first: declaring a resource makes it public. */
export function listResources(db: Queryable, environment: Environment, query: DiscoveryQuery): Promise<ResourceRow[]> {
  return db.many(
    ResourceRow,
    sql`
    select resource, type, x402_version, accepts, details, updated_at from discovered_resources where ${matching(environment, query)}
    order by updated_at desc, resource, operation, organisation_id limit ${query.limit} offset ${query.offset}`,
  )
}

export async function countResources(db: Queryable, environment: Environment, query: DiscoveryQuery): Promise<number> {
  const row = await db.one(
    CountRow,
    sql`select count(*) as count from discovered_resources where ${matching(environment, query)}`,
  )
  return Number(row.count)
}

function matching(environment: Environment, query: DiscoveryQuery): Sql {
  const { type = null, payTo = null, scheme = null, network = null, extensions = null } = query
  return sql`environment = ${environment} and (${type}::text is null or type = ${type})
    and (${extensions}::text is null or jsonb_exists(details->'extensions', ${extensions}))
    and exists (select from jsonb_array_elements(accepts) offer
      where (${payTo}::text is null or lower(offer->>'payTo') = lower(${payTo}))
        and (${scheme}::text is null or offer->>'scheme' = ${scheme}) and (${network}::text is null or offer->>'network' = ${network}))`
}

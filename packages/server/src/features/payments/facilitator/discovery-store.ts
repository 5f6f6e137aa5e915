import { z } from 'zod'
import type { Environment, Tenant } from '../../../platform/ctx.ts'
import { type Queryable, type Sql, sql } from '../../../platform/db/db.ts'
import { idIs } from '../../../platform/db/page.ts'
import { id, type PaymentId } from '../../../platform/ids.ts'
import { paymentStatuses } from '../schema.ts'
import type { Declaration } from './paid-resource.ts'
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
    where exists (select from discovered_resources where organisation_id = ${organisationId} and environment = ${environment}
        and resource = ${resource} and type = ${type} and operation = ${operation})
      or (select count(*) from discovered_resources where organisation_id = ${organisationId} and environment = ${environment}) < ${resourcesMax}::int
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

/** Returns how many resources match, at most `most`: it reads no more rows of them. */
export async function countResources(
  db: Queryable,
  environment: Environment,
  query: DiscoveryQuery,
  most: number,
): Promise<number> {
  const row = await db.one(
    CountRow,
    sql`
    select count(*) as count from (
      select from discovered_resources where ${matching(environment, query)} order by updated_at desc limit ${most}) as counted`,
  )
  return Number(row.count)
}

function matching(environment: Environment, query: DiscoveryQuery): Sql {
  const { type = null, payTo = null, scheme = null, network = null, extensions = null } = query
  return sql`environment = ${environment} and not exists (
      select from organisations where organisations.id = discovered_resources.organisation_id and organisations.suspended_at is not null)
    and (${type}::text is null or type = ${type})
    and (${extensions}::text is null or jsonb_exists(details->'extensions', ${extensions}))
    and exists (select from jsonb_array_elements(accepts) offer
      where (${payTo}::text is null or lower(offer->>'payTo') = lower(${payTo}))
        and (${scheme}::text is null or offer->>'scheme' = ${scheme}) and (${network}::text is null or offer->>'network' = ${network}))`
}

/** A payment as a settle request finds it by its claim, of any organization. The caller checks what it may disclose. */
export const KnownPayment = z.object({
  id: id('pay'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  door: z.enum(['verify', 'facilitator', 'upfront']),
  network: z.string(),
  scheme: z.string(),
  protocolVersion: z.number().nullable(),
  payTo: z.string(),
  payer: z.string().nullable(),
  rawAmount: z.string().transform((digits) => BigInt(digits)),
  paymentFingerprint: z.string().nullable(),
  status: z.enum(paymentStatuses),
})
export type KnownPayment = z.output<typeof KnownPayment>

const columns = sql`id, organisation_id, environment, door, network, scheme, protocol_version, pay_to, payer, raw_amount, payment_fingerprint, status`

/** Finds a payment by its claim across organizations: a claim is unique for the whole service. */
export function findClaimed(db: Queryable, claimKey: string): Promise<KnownPayment | undefined> {
  return db.maybeOne(
    KnownPayment,
    sql`
    select ${columns} from payments where id = (select payment_id from payment_claims where claim_hash = claim_hash(${claimKey}))`,
  )
}

export function getKnownPayment(db: Queryable, tenant: Tenant, paymentId: string): Promise<KnownPayment> {
  return db.one(
    KnownPayment,
    sql`
    select ${columns} from payments
    where ${idIs(paymentId)} and organisation_id is not distinct from ${tenant.organisationId} and environment is not distinct from ${tenant.environment}`,
  )
}

/**
 * Takes the one success response of a payment; returns false for every caller but the first. The same caller may take it again
 * under the Idempotency-Key `key`, so that a lost response can be repeated.
 */
export async function markAnswered(
  db: Queryable,
  paymentId: PaymentId,
  { now, key }: { readonly now: Date; readonly key: string | null },
): Promise<boolean> {
  const taken = await db.run(sql`
    update payments set answered_at = coalesce(answered_at, ${now}), answered_to = ${key}
    where ${idIs(paymentId)} and status = 'settled' and (answered_at is null or answered_to = ${key})`)
  return taken === 1
}

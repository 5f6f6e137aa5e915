import { z } from 'zod'
import type { Environment, Tenant } from '../../../platform/ctx.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
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
const ListedRow = z.object({ isListed: z.boolean() })

/** Most seconds that the time of a listed resource may be behind its newest payment, so that most payments write nothing. */
const behindSecondsMax = 600

/**
 * Lists a resource or updates its entry. The offer just paid comes first and replaces an older one of the same scheme, network,
 * token and account; at most 16 are kept. Returns false if the organisation has reached its limit.
 */
export async function upsertResource(
  db: Queryable,
  tenant: Tenant,
  listing: Declaration & { readonly now: Date; readonly resourcesMax: number },
): Promise<boolean> {
  const { resource, type, operation, x402Version, accepts, details, now, resourcesMax } = listing
  const { organisationId, environment } = tenant
  const own = sql`organisation_id = ${organisationId} and environment = ${environment} and resource = ${resource} and type = ${type}
    and operation = ${operation}`
  const { isListed } = await db.one(
    ListedRow,
    sql`
    with written as (
      insert into discovered_resources as known (organisation_id, environment, resource, type, operation, x402_version, accepts, details, updated_at)
      select ${organisationId}, ${environment}, ${resource}, ${type}, ${operation}, ${x402Version}::smallint,
        ${JSON.stringify([accepts])}::jsonb, ${JSON.stringify(details)}::jsonb, ${now}::timestamptz
      where exists (select from discovered_resources where ${own})
        or (select count(*) from discovered_resources where organisation_id = ${organisationId} and environment = ${environment}) < ${resourcesMax}::int
      on conflict (organisation_id, environment, resource, type, operation) do update set
        x402_version = excluded.x402_version, details = excluded.details, updated_at = excluded.updated_at,
        accepts = excluded.accepts || coalesce((
          select jsonb_agg(kept.offer) from (
            select offer from jsonb_array_elements(known.accepts) offer
            where (offer->>'scheme', offer->>'network', lower(offer->>'asset'), lower(offer->>'payTo')) is distinct from
              (excluded.accepts->0->>'scheme', excluded.accepts->0->>'network', lower(excluded.accepts->0->>'asset'), lower(excluded.accepts->0->>'payTo'))
            limit 15) kept), '[]'::jsonb)
      where known.updated_at < excluded.updated_at - ${behindSecondsMax} * interval '1 second'
        or (known.x402_version, known.details, known.accepts->0) is distinct from (excluded.x402_version, excluded.details, excluded.accepts->0)
      returning 1 as is_written
    )
    select exists (select from written) or exists (select from discovered_resources where ${own}) as is_listed`,
  )
  return isListed
}

/**
 * Returns the resources of all organisations in an environment, newest first: declaring a resource makes it public. Reads the rows of an index made for
 * the filters in their order, and no others. The transaction must read in order.
 */
export async function listResources(tx: Tx, environment: Environment, query: DiscoveryQuery): Promise<ResourceRow[]> {
  if (isUnknown(query)) return []
  const { where, order } = matching(environment, query)
  const page = sql`order by ${order} limit ${query.limit} offset ${query.offset}`
  if (!isTerm(query))
    return tx.many(ResourceRow, sql`select ${resourceColumns} from discovered_resources f where ${where} ${page}`)
  return tx.many(
    ResourceRow,
    sql`
    select ${resourceColumns}
    from (select f.resource_key, f.updated_at as listed_at from discovery_terms f where ${where} ${page}) as listed
      join discovered_resources on discovery_key(organisation_id, environment, resource, type, operation) = resource_key
    order by listed_at desc, resource_key`,
  )
}

const resourceColumns = sql`resource, type, x402_version, accepts, details, updated_at`

/** Returns how many resources match, at most `most`: it reads no more rows of them. The transaction must read in order. */
export async function countResources(
  tx: Tx,
  environment: Environment,
  query: DiscoveryQuery,
  most: number,
): Promise<number> {
  if (isUnknown(query)) return 0
  const { where, order } = matching(environment, query)
  const table = isTerm(query) ? sql`discovery_terms` : sql`discovered_resources`
  const row = await tx.one(
    CountRow,
    sql`
    select count(*) as count from (select from ${table} f where ${where} order by ${order} limit ${most}) as counted`,
  )
  return Number(row.count)
}

/** Every resource declares the extension bazaar, and no other is stored. */
function isUnknown({ extensions }: DiscoveryQuery): boolean {
  return extensions !== undefined && extensions !== 'bazaar'
}

/** Whether the resources are found by a term. */
function isTerm({ type, payTo, scheme, network }: DiscoveryQuery): boolean {
  return type !== undefined || payTo !== undefined || scheme !== undefined || network !== undefined
}

/** The condition and the order of the rows `f` of the table that the filters read, as an index of it has them. */
function matching(environment: Environment, query: DiscoveryQuery): Record<'where' | 'order', Sql> {
  const { type = null, payTo = null, scheme = null, network = null } = query
  const onSale = sql`f.environment = ${environment} and not exists (
    select from organisations where organisations.id = f.organisation_id and organisations.suspended_at is not null)`
  if (!isTerm(query))
    return { where: onSale, order: sql`f.updated_at desc, f.resource, f.operation, f.organisation_id` }
  const ofTerm = sql`f.term = discovery_term(${type}, ${payTo}, ${scheme}, ${network}) and ${onSale}`
  return { where: ofTerm, order: sql`f.updated_at desc, f.resource_key` }
}

/** A payment as a settle request finds it by its claim, of any organisation. The caller checks what it may disclose. */
export const KnownPayment = z.object({
  id: id('pay'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  entryPoint: z.enum(['verify', 'facilitator', 'upfront']),
  network: z.string(),
  scheme: z.string(),
  protocolVersion: z.number().nullable(),
  asset: z.string(),
  payTo: z.string(),
  payer: z.string().nullable(),
  rawAmount: z.string().transform((digits) => BigInt(digits)),
  paymentFingerprint: z.string().nullable(),
  status: z.enum(paymentStatuses),
})
export type KnownPayment = z.output<typeof KnownPayment>

const columns = sql`id, organisation_id, environment, door as entry_point, network, scheme, protocol_version, asset, pay_to, payer, raw_amount, payment_fingerprint, status`

/** Finds a payment by its claim across organisations: a claim is unique for the whole service. */
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
 * under the Idempotency-Key `key`, so that a lost response can be repeated. No caller gets it after a refund: the payer would have the money and the goods.
 */
export async function markSuccessReturned(
  db: Queryable,
  paymentId: PaymentId,
  { now, key }: { readonly now: Date; readonly key: string | null },
): Promise<boolean> {
  const taken = await db.run(sql`
    update payments set answered_at = coalesce(answered_at, ${now}), answered_to = ${key}
    where ${idIs(paymentId)} and status = 'settled' and refunded_raw = 0 and (answered_at is null or answered_to = ${key})`)
  return taken === 1
}

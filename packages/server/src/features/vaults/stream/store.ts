import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { type Queryable, type Sql, sql } from '../../../platform/db/db.ts'
import { firstIdAt } from '../../../platform/db/page.ts'
import { id } from '../../../platform/ids.ts'
import type { VaultId } from '../schema.ts'

/** The beginning of a stream: after one event, after all up to an instant, or, `unstated`, now; at the first event of a sealed vault. */
export type Since = { readonly eventId: string } | { readonly instant: Date } | 'unstated'

const Start = z.object({
  sealedAt: z.date().nullable(),
  eventCount: z.number(),
  /** The last event that is not sent: 0 and null for none. */
  sequence: z.number().nullable(),
  eventId: id('evt').nullable(),
})
export type Start = z.output<typeof Start>

/**
 * Returns where a stream begins, read at one moment; undefined if the vault is gone, a null `sequence` if it has no such event.
 */
export function findStart(
  db: Queryable,
  tenant: Tenant,
  vault: { readonly vaultId: VaultId; readonly now: Date },
  since: Since,
): Promise<Start | undefined> {
  const { organisationId, environment } = tenant
  return db.maybeOne(
    Start,
    sql`
    select vaults.sealed_at, vaults.event_count, before.id as event_id,
      coalesce(before.sequence, ${isNamed(since) ? null : 0}::int) as sequence
    from vaults
    left join lateral (
      select sequence, id from vault_events
      where organisation_id = ${organisationId} and environment = ${environment} and vault_id = vaults.id ${upTo(since)}
      order by sequence desc limit 1
    ) as before on true
    where organisation_id = ${organisationId} and environment = ${environment} and vaults.id = ${vault.vaultId}
      and (expires_at is null or expires_at > ${vault.now})`,
  )
}

function isNamed(since: Since): since is { readonly eventId: string } {
  return typeof since === 'object' && 'eventId' in since
}

function upTo(since: Since): Sql {
  if (since === 'unstated') return sql`and vaults.sealed_at is null`
  return isNamed(since) ? sql`and id = ${since.eventId}` : sql`and sequence = (${lastUpTo(since.instant)})`
}

/**
 * Selects the sequence number of the last event up to an instant, 0 for none, by halving: times increase with the sequence, which has no
 * gap. It reads about twenty events of a vault that has a million.
 */
function lastUpTo(instant: Date): Sql {
  return sql`
    with recursive search as (
      select 0 as low, vaults.event_count as high
      union all
      select case when probe.created_at <= ${instant} then probe.sequence else low end,
        case when probe.created_at <= ${instant} then high else probe.sequence - 1 end
      from search join vault_events as probe on probe.vault_id = vaults.id and probe.sequence = (low + high + 1) / 2
      where low < high
    )
    select low from search where low = high`
}

export const EventRow = z.object({
  sequence: z.number(),
  id: id('evt'),
  type: z.string(),
  /** JSON as the database stores it, without line breaks. */
  payload: z.string(),
  createdAt: z.date(),
})
export type EventRow = z.output<typeof EventRow>

/** Bounds of one page of a replay. */
export interface PageBounds {
  readonly after: number
  readonly eventsMax: number
  /** A page ends with the event that exceeds it. */
  readonly bytesMax: number
}

/** Fewest bytes that an event counts for in a page: its row, and a payload of the service itself, which counts for no storage. */
export const eventBytesMin = 512

/** Returns events after a sequence number, in order; none if the vault is gone. It reads the payloads of those that it returns, and no others. */
export function listPageAfter(
  db: Queryable,
  tenant: Tenant,
  vault: { readonly vaultId: VaultId; readonly now: Date },
  { after, eventsMax, bytesMax }: PageBounds,
): Promise<EventRow[]> {
  const { organisationId, environment } = tenant
  return db.many(
    EventRow,
    sql`
    select sequence, id, type, payload::text as payload, created_at from (
      select event.*, sum(greatest(event.size, ${eventBytesMin})) over (order by event.sequence)
        - greatest(event.size, ${eventBytesMin}) as bytes_before
      from vault_events as event
      join vaults on vaults.id = event.vault_id
      where event.organisation_id = ${organisationId} and event.environment = ${environment} and event.vault_id = ${vault.vaultId}
        and event.sequence > ${after} and event.sequence <= ${after + eventsMax}
        and (vaults.expires_at is null or vaults.expires_at > ${vault.now})
    ) as page
    where bytes_before < ${bytesMax}
    order by sequence`,
  )
}

/** A vault that streams of this process follow, and the last event that they received. */
export interface Followed {
  readonly tenant: Tenant
  readonly vaultId: VaultId
  readonly sequence: number
}

const News = z.object({
  /** Position in the list of requested vaults, from 1. */
  position: z.bigint().transform(Number),
  isGone: z.boolean(),
  sequence: z.number().nullable(),
  id: id('evt').nullable(),
  type: z.string().nullable(),
  payload: z.string().nullable(),
  createdAt: z.date().nullable(),
  /** Bytes that the event counts for in a read. */
  size: z.number(),
})
export type News = z.output<typeof News>

/** Bounds of one read of several vaults. Vaults that have expired at `now` are gone. */
interface NewsBounds {
  readonly now: Date
  readonly eventsOfVaultMax: number
  readonly rowsMax: number
  readonly bytesMax: number
}

/**
 * Returns what is new in any of these vaults, in one statement: nothing for a vault without new events, events in their order,
 * and `isGone` if the vault no longer exists. The sequence of a vault has no gap and is assigned under its row lock, so no
 * earlier event can appear after this read. A read ends with the event that reaches `bytesMax`; it reads no payloads after that one.
 */
export function listNews(db: Queryable, followed: readonly Followed[], bounds: NewsBounds): Promise<News[]> {
  return db.many(
    News,
    sql`
    select position, is_gone, sequence, id, type, payload::text as payload, created_at, size from (
    select found.*, sum(size) over (order by position, sequence rows between unbounded preceding and current row) - size as bytes_before from (
    select followed.position, vaults.id is null or coalesce(vaults.expires_at <= ${bounds.now}, false) as is_gone,
      event.sequence, event.id, event.type, event.payload, event.created_at,
      case when event.sequence is null then 0 else greatest(event.size, ${eventBytesMin}) end as size
    from unnest(${followed.map(({ tenant }) => tenant.organisationId)}::text[], ${followed.map(({ tenant }) => tenant.environment)}::text[],
      ${followed.map(({ vaultId }) => vaultId)}::text[], ${followed.map(({ sequence }) => sequence)}::int[])
      with ordinality as followed (organisation_id, environment, vault_id, sequence, position)
    left join vaults on vaults.id = followed.vault_id and vaults.organisation_id = followed.organisation_id
      and vaults.environment = followed.environment
    left join lateral (
      select sequence, id, type, payload, size, created_at from vault_events
      where vaults.event_count > followed.sequence and vault_id = followed.vault_id and sequence > followed.sequence
        and organisation_id = followed.organisation_id and environment = followed.environment
      order by sequence limit ${bounds.eventsOfVaultMax}
    ) as event on true
    where vaults.id is null or vaults.expires_at <= ${bounds.now} or event.sequence is not null
    order by followed.position, event.sequence
    limit ${bounds.rowsMax}) as found) as page
    where bytes_before < ${bounds.bytesMax}
    order by position, sequence`,
  )
}

const Expiry = z.object({
  /** Position in the list of requested vaults, from 1. */
  position: z.bigint().transform(Number),
  expiredAt: z.date(),
})
export type Expiry = z.output<typeof Expiry>

/** Milliseconds since its sweep in which a stream still looks for the expiry of a vault: it follows within a second. */
const sweptMsMax = 60_000

/**
 * Returns when each of these vaults expired, swept or not. It returns nothing for a vault that exists or was deleted. The recent events of each tenant are read once,
 * however many of its vaults are looked up: no index finds an event by its vault.
 */
export function listExpiries(
  db: Queryable,
  vaults: readonly Pick<Followed, 'tenant' | 'vaultId'>[],
  now: Date,
): Promise<Expiry[]> {
  return db.many(
    Expiry,
    sql`
    with gone as materialized (
      select given.*, vaults.id is null as is_swept, vaults.expires_at
      from unnest(${vaults.map(({ tenant }) => tenant.organisationId)}::text[], ${vaults.map(({ tenant }) => tenant.environment)}::text[],
        ${vaults.map(({ vaultId }) => vaultId)}::text[]) with ordinality as given (organisation_id, environment, vault_id, position)
      left join vaults on vaults.id = given.vault_id and vaults.organisation_id = given.organisation_id and vaults.environment = given.environment
    ), swept as materialized (
      select jsonb_object_agg(vault_id, position) as positions from gone where is_swept
    )
    select position, expires_at as expired_at from gone where expires_at <= ${now}
    union all
    select (swept.positions->>(events.payload->>'vaultId'))::bigint, (events.payload->>'expiredAt')::timestamptz
    from (select distinct organisation_id, environment from gone where is_swept) as tenant
    join events on events.organisation_id = tenant.organisation_id and events.environment = tenant.environment and events.type = 'vault.expired'
      and events.id >= ${firstIdAt('evt', now.getTime() - sweptMsMax)}
    cross join swept where swept.positions ? (events.payload->>'vaultId')`,
  )
}

import type { EventPayloads, EventType } from '@purser/protocol'
import { z } from 'zod'
import type { Ctx, Tenant } from './ctx.ts'
import { type Sql, sql, type Tx } from './db/db.ts'
import { type Id, newId } from './ids.ts'

type PublishingCtx = Pick<Ctx, 'clock' | 'random' | 'tenant' | 'eventsCommitted'>

/**
 * Writes an event to the outbox in the transaction of its cause, so that both are committed or neither is. Delivery polls the table; NOTIFY
 * is not used, since it would serialize every commit.
 */
export async function publishEvent<T extends EventType>(
  ctx: PublishingCtx,
  tx: Tx,
  type: T,
  payload: EventPayloads[T],
): Promise<Id<'evt'>> {
  const [eventId] = await publishEvents(ctx, tx, type, [payload])
  if (eventId === undefined) throw new Error('an event was not written')
  return eventId
}

/** Writes several events of one type and tenant in one statement. */
export function publishEvents<T extends EventType>(
  ctx: PublishingCtx,
  tx: Tx,
  type: T,
  payloads: readonly EventPayloads[T][],
): Promise<readonly Id<'evt'>[]> {
  return insertEvents(ctx, tx, type, payloads)
}

/** A condition: whether a webhook of the tenant subscribes to events of the type. Only their events are fanned out. */
export function hasSubscriber({ organisationId, environment }: Tenant, type: string): Sql {
  return sql`exists (
      select from webhooks where organisation_id = ${organisationId} and environment = ${environment} and deleted_at is null
        and (events @> array[${type}]::text[] or events @> array['*']))`
}

const WrittenEvents = z.object({ haveSubscribers: z.boolean() })

/** Writes events without checking their payloads against the catalogue. For `publishEvents`, and for tests of delivery. */
export async function insertEvents(
  ctx: PublishingCtx,
  tx: Tx,
  type: string,
  payloads: readonly object[],
): Promise<readonly Id<'evt'>[]> {
  const ids = payloads.map(() => newId('evt', ctx))
  const texts = payloads.map((payload) => JSON.stringify(payload))
  const { haveSubscribers } = await tx.one(
    WrittenEvents,
    sql`
    with due as (
      insert into events_due (event_id) select unnest(${ids}::text[]) where ${hasSubscriber(ctx.tenant, type)} returning event_id
    ), written as (
      insert into events (id, organisation_id, environment, type, payload, created_at)
      select id, ${ctx.tenant.organisationId}, ${ctx.tenant.environment}, ${type}, payload::jsonb, ${ctx.clock.now()}
      from unnest(${ids}::text[], ${texts}::text[]) as given (id, payload)
    )
    select exists (select from due) as have_subscribers`,
  )
  if (ids.length > 0) tx.afterCommit(() => ctx.eventsCommitted?.({ haveSubscribers }))
  return ids
}

import type { Ctx } from './ctx.ts'
import { sql, type Tx } from './db/db.ts'
import { type Id, newId } from './ids.ts'

type PublishingCtx = Pick<Ctx, 'clock' | 'random' | 'tenant' | 'eventsCommitted'>

/**
 * Writes an event to the outbox inside the transaction that holds its cause: both are there or neither is. Delivery
 * reads the table; no NOTIFY is sent here, since it would serialise every commit.
 */
export async function publishEvent(
  ctx: PublishingCtx,
  tx: Tx,
  type: string,
  payload: Readonly<Record<string, unknown>>,
): Promise<Id<'evt'>> {
  const [eventId] = await publishEvents(ctx, tx, type, [payload])
  if (eventId === undefined) throw new Error('an event was not written')
  return eventId
}

/** The same for several events of one type and tenant, in one statement. */
export async function publishEvents(
  ctx: PublishingCtx,
  tx: Tx,
  type: string,
  payloads: readonly Readonly<Record<string, unknown>>[],
): Promise<readonly Id<'evt'>[]> {
  const ids = payloads.map(() => newId('evt', ctx))
  const texts = payloads.map((payload) => JSON.stringify(payload))
  await tx.run(sql`
    insert into events (id, organisation_id, environment, type, payload, created_at)
    select id, ${ctx.tenant.organisationId}, ${ctx.tenant.environment}, ${type}, payload::jsonb, ${ctx.clock.now()}
    from unnest(${ids}::text[], ${texts}::text[]) as given (id, payload)`)
  if (ids.length > 0 && ctx.eventsCommitted !== undefined) tx.afterCommit(ctx.eventsCommitted)
  return ids
}

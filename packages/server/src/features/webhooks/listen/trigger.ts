import { findEvent } from '../event-store.ts'
import { oldestKept } from '../history.ts'
import type { Ctx } from '../ports.ts'
import type { Event } from '../schema.ts'
import { fail } from './errors.ts'
import { samplePayload } from './samples.ts'
import type { TriggerRequest } from './schema.ts'

/**
 * Creates a sample event and publishes it as a feature would: every webhook and every listener gets it. Not possible in the live
 * environment, because receivers act on live events.
 */
export function triggerEvent(ctx: Ctx, { type }: TriggerRequest): Promise<Event> {
  if (ctx.tenant.environment !== 'test') throw fail('test-environment-only')
  return ctx.db.tx(async (tx) => {
    const eventId = await ctx.publish(tx, type, samplePayload(type, ctx))
    await ctx.audit(tx, { action: 'events.trigger', target: eventId, details: { type } })
    const event = await findEvent(tx, ctx.tenant, eventId, oldestKept(ctx))
    if (event === undefined) throw new Error('an event that was just written is not there')
    return event
  })
}

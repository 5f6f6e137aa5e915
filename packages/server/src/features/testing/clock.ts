import type { z } from 'zod'
import { advanceDueTimes } from './clock-store.ts'
import { fail } from './errors.ts'
import type { Ctx } from './ports.ts'
import type { ClockChange, NewClockChange } from './schema.ts'

/**
 * Advances the test environment of the organisation in time: due times and expiries become earlier by these seconds. The clocks of the service, of
 * chains and of leases do not change, nor do the times in signatures.
 */
export async function advanceTestClock(
  ctx: Pick<Ctx, 'audit' | 'clock' | 'db' | 'hasTestClock' | 'tenant'>,
  { advance }: NewClockChange,
): Promise<z.input<typeof ClockChange>> {
  if (ctx.tenant.environment !== 'test' || !ctx.hasTestClock) throw fail('test-clock-off')
  return ctx.db.tx(async (tx) => {
    const moved = await advanceDueTimes(tx, ctx.tenant, { now: ctx.clock.now(), seconds: advance })
    await ctx.audit(tx, {
      action: 'test.clock.advance',
      target: ctx.tenant.organisationId,
      details: { advancedSeconds: advance },
    })
    return { advancedSeconds: advance, moved }
  })
}

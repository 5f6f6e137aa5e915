import { instantOf } from '../../../platform/clock.ts'
import type { Ctx } from '../../../platform/ctx.ts'

/** A sender is screened within seconds; money whose sender is not through after so long waits no longer. */
const waitMs = 300_000

/**
 * Deposits that were seen after this instant wait for the screening of their sender before they are swept or sent: money that moved on could
 * not be frozen any more. Undefined while the list is stale: nobody is cleared then, and waiting would end in nothing.
 */
export async function unscreenedSince(ctx: Pick<Ctx, 'clock' | 'screening'>): Promise<Date | undefined> {
  const { isStale } = await ctx.screening.list()
  return isStale ? undefined : instantOf(ctx.clock.now().getTime() - waitMs)
}

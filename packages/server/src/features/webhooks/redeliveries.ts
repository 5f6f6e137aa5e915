import { shareOwnerOf } from '../../platform/ctx.ts'
import { failPlatform } from '../../platform/errors.ts'
import type { Ctx } from './ports.ts'

/**
 * Deliveries that the requests of one owner may write again: a burst of 20,000, then 100 a second. A request is admitted while any token is left, so
 * a replay of 10,000 may overdraw the limit once.
 */
export const redeliveryLimit = { perSecond: 100, burst: 20_000 }

/** The cost of a sample or test event: its rows, deliveries and attempts are stored for 30 days, and no payment causes it. */
export const sampleEventCost = 20

/** The cost of a dry run, which counts up to 10,000 deliveries. */
export const countCost = 10

/** Runs a request that writes deliveries again, and charges their number. Throws 429 while the owner's earlier requests have used the limit up. */
export async function limitRedeliveries<T>(
  ctx: Pick<Ctx, 'redeliveries' | 'tenant' | 'shareOwner'>,
  countOf: (done: T) => number,
  run: () => Promise<T>,
): Promise<T> {
  const owner = shareOwnerOf(ctx)
  const { admitted, resetSeconds } = ctx.redeliveries(owner)
  if (!admitted) throw failPlatform('rate-limit-exceeded', { retryAfterSeconds: resetSeconds })
  const done = await run()
  ctx.redeliveries.owe(owner, countOf(done) - 1)
  return done
}

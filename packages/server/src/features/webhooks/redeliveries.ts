import { placeOwnerOf } from '../../platform/ctx.ts'
import { failPlatform } from '../../platform/errors.ts'
import type { Ctx } from './ports.ts'

/** How many deliveries the requests of one owner may write again: two replays of 10,000 at once, and then one in 100 seconds. */
export const redeliveryLimit = { perSecond: 100, burst: 20_000 }

/** The cost of an event that nothing caused: it is kept for 30 days with its deliveries and their attempts, and nobody pays for it. */
export const madeUpCost = 20

/** The cost of a dry run, which counts up to 10,000 deliveries. */
export const countCost = 10

/** Runs a request that writes deliveries again, and counts them. Refused with 429 while its owner's earlier ones used up the limit. */
export async function limitRedeliveries<T>(
  ctx: Pick<Ctx, 'redeliveries' | 'tenant' | 'placeOwner'>,
  countOf: (done: T) => number,
  run: () => Promise<T>,
): Promise<T> {
  const owner = placeOwnerOf(ctx)
  const { admitted, resetSeconds } = ctx.redeliveries(owner)
  if (!admitted) throw failPlatform('rate-limit-exceeded', { retryAfterSeconds: resetSeconds })
  const done = await run()
  ctx.redeliveries.owe(owner, countOf(done) - 1)
  return done
}

import { instantOf } from '../../platform/clock.ts'
import type { Ctx } from '../../platform/ctx.ts'
import { failPlatform } from '../../platform/errors.ts'
import type { Recurring } from '../../platform/job.ts'
import { deleteQuietCallers, findOldestAsked, noteCaller } from './caller-store.ts'

const windowMs = 60_000

/**
 * Refuses a caller of the customer's who was given his share of challenges in the last minute, counted over all processes and to
 * the millisecond: in no minute is there one more (docs/decisions/0031).
 */
export async function admitCaller(ctx: Ctx, ip: string): Promise<void> {
  const now = ctx.clock.now()
  const since = instantOf(now.getTime() - windowMs)
  if (await noteCaller(ctx.db, ctx.tenant, { ip, since, now, askedMax: ctx.challengesPerCallerMax })) return
  const oldest = await findOldestAsked(ctx.db, ctx.tenant, { ip, since })
  const waitMs = oldest === undefined ? 0 : oldest.getTime() + windowMs - now.getTime()
  throw failPlatform('rate-limit-exceeded', { retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1_000)) })
}

/** Forgets callers of whom nothing counts any more. Deleting what is deleted changes nothing. */
export const sweepCallers: Recurring = {
  name: 'payments.sweep-challenge-callers',
  everyMs: windowMs,
  run: async (ctx) => {
    await deleteQuietCallers(ctx.db, instantOf(ctx.clock.now().getTime() - windowMs))
  },
}

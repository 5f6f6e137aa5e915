import { instantOf } from '../../platform/clock.ts'
import { failPlatform } from '../../platform/errors.ts'
import type { Recurring } from '../../platform/job.ts'
import { deleteQuietCallers, findOldestRequest, noteCaller } from './caller-store.ts'
import type { Ctx, Deps } from './ports.ts'

const windowMs = 60_000

/**
 * Refuses a caller that used its quota of challenges within the last minute. The count covers all processes and a sliding minute,
 * exact to the millisecond (docs/decisions/0031).
 */
export async function admitCaller(ctx: Ctx, ip: string): Promise<void> {
  const now = ctx.clock.now()
  const since = instantOf(now.getTime() - windowMs)
  if (await noteCaller(ctx.db, ctx.tenant, { ip, since, now, requestsMax: ctx.challengesPerCallerMax })) return
  const oldest = await findOldestRequest(ctx.db, ctx.tenant, { ip, since })
  const waitMs = oldest === undefined ? 0 : oldest.getTime() + windowMs - now.getTime()
  throw failPlatform('rate-limit-exceeded', { retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1_000)) })
}

/** Deletes callers whose requests no longer count. Running it again is harmless. */
export const sweepCallers: Recurring<Deps> = {
  name: 'payments.sweep-challenge-callers',
  everyMs: windowMs,
  run: async (ctx) => {
    await deleteQuietCallers(ctx.db, instantOf(ctx.clock.now().getTime() - windowMs))
  },
}

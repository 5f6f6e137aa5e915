import type { Tx } from '../../platform/db/db.ts'
import { unlimited } from './plans.ts'
import type { Ctx } from './ports.ts'
import { limitError, monthOf, periodOf, quotas, type UsageKind } from './quotas.ts'
import { addToCounter, insertReported, listReported, lockCounter, planOf } from './store.ts'

/** Shares of a quota, in percent, that are reported when they are reached. */
const thresholds = [80, 100] as const

export interface Counted {
  readonly kind: UsageKind
  /** The plan's quota. */
  readonly limit: number
  /** The counter after this transaction. */
  readonly used: number
  /** The exact use, if the counter may include expired things; read only if the counter has reached a threshold. */
  readonly exact?: () => Promise<number>
}

/**
 * Publishes `usage.threshold` if the transaction brings the use to 80 or 100 % of the plan's quota: once for each calendar month
 * (UTC), limit and share, so that use that goes up and down is reported once, and a changed plan again. If both shares are
 * reached at once, the greater is reported. The caller has locked the counter, so that two writers cannot both be the first.
 */
export async function reportThresholds(
  tx: Tx,
  ctx: Pick<Ctx, 'tenant' | 'clock' | 'publish'>,
  { kind, limit, used, exact }: Counted,
): Promise<void> {
  if (reachedBy(used, limit).length === 0) return
  const reachedAt = ctx.clock.now()
  const quota = { kind, limit, month: monthOf(reachedAt) }
  const reported = await listReported(tx, ctx.tenant, quota)
  const isNew = (percent: number): boolean => !reported.includes(percent)
  if (!reachedBy(used, limit).some(isNew)) return
  const current = exact === undefined ? used : await exact()
  const fresh = reachedBy(current, limit).filter(isNew)
  const percent = fresh.at(-1)
  if (percent === undefined) return
  await insertReported(tx, ctx.tenant, quota, { percents: fresh, reachedAt })
  const payload = { kind, percent, used: current, limit, month: quota.month, reachedAt: reachedAt.toISOString() }
  await ctx.publish(tx, 'usage.threshold', payload)
}

/** Returns the shares that are reached, the smallest first. */
function reachedBy(used: number, limit: number): readonly number[] {
  return limit === unlimited ? [] : thresholds.filter((percent) => used * 100 >= limit * percent)
}

/**
 * Counts what a transaction creates of a kind, one by default, or refuses all of it with the document's limit error. The counter stays
 * locked until that transaction ends, so that parallel requests together never exceed the limit.
 */
export async function countOrRefuse(
  tx: Tx,
  ctx: Pick<Ctx, 'tenant' | 'clock' | 'upgradeUrl' | 'publish'>,
  kind: UsageKind,
  count = 1,
): Promise<void> {
  const period = periodOf(kind, ctx.clock.now())
  const limit = quotas[kind].limitOf(await planOf(tx, ctx.tenant.organisationId))
  const used = await lockCounter(tx, ctx.tenant, kind, period)
  if (limit !== unlimited && used + count > limit) throw limitError(ctx, quotas[kind].code, limit, used)
  await addToCounter(tx, ctx.tenant, kind, period, count)
  await reportThresholds(tx, ctx, { kind, limit, used: used + count })
}

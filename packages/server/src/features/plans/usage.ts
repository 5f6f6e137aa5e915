import type { Network } from '@purser/protocol'
import { z } from 'zod'
import { utcMonthOf } from '../../platform/clock.ts'
import type { Tx } from '../../platform/db/db.ts'
import { type Plan, unlimited } from './plans.ts'
import type { Ctx } from './ports.ts'
import { dayOf, limitError, periodOf, quotas, type UsageKind } from './quotas.ts'
import {
  addToCounter,
  changeGas,
  insertReported,
  listCounters,
  listGasTaken,
  listReported,
  lockCounter,
  lockGasTaken,
  planOf,
  readAtOneInstant,
  sharersWith,
} from './store.ts'

/** The used part of a quota, in a response. */
export const UsageFigure = z.strictObject({
  used: z.int().describe('What is used.'),
  limit: z.int().describe('What the plan allows; -1 means unlimited.'),
  percent: z.int().nullable().meta({ description: 'The used share of the limit, rounded down; null if unlimited.' }),
  unlimited: z.boolean().describe('Whether the plan has no limit for it.'),
})
type UsageFigure = z.input<typeof UsageFigure>

function shownFigure(used: number, limit: number): UsageFigure {
  const isUnlimited = limit === unlimited
  const percent = limit === 0 ? 100 : Math.floor((used * 100) / limit)
  return { used, limit, percent: isUnlimited ? null : percent, unlimited: isUnlimited }
}

export interface PeriodUsage {
  readonly plan: Plan
  figureOf(kind: UsageKind): UsageFigure
}

/**
 * Returns the use and the plan's quotas, as every response of the API shows them: the counters without what is expired and not
 * swept, of all organisations that share the quotas, read at one instant, so that a sweep between two reads counts nothing twice and omits nothing.
 */
export function usageOf(ctx: Pick<Ctx, 'db' | 'tenant' | 'clock' | 'recounts'>): Promise<PeriodUsage> {
  const now = ctx.clock.now()
  return readAtOneInstant(ctx.db, async (tx) => {
    const plan = await planOf(tx, ctx.tenant.organisationId)
    const counters = await listCounters(tx, ctx.tenant, utcMonthOf(now))
    const gone = new Map<UsageKind, number>()
    const sharers = await sharersWith(tx, ctx.tenant)
    for (const { kind, gone: countGone } of ctx.recounts)
      if (countGone !== undefined) gone.set(kind, await countGone(tx, sharers, now))
    return {
      plan,
      figureOf: (kind) =>
        shownFigure(Math.max(0, (counters.get(kind) ?? 0) - (gone.get(kind) ?? 0)), quotas[kind].allowanceOf(plan)),
    }
  })
}

type BudgetCtx = Pick<Ctx, 'tenant' | 'clock' | 'settleNanoUsdPerDayMax' | 'gasPrices'>

/** Several items on one network, each of which needs this much gas, in billionths of a US dollar. */
interface GasWanted {
  readonly network: Network
  readonly nanoUsd: bigint
  readonly wanted: number
}

/**
 * Reserves gas for items on several networks, each listed once, from the operator's budgets of the day. Returns for how many items of each network the
 * budget sufficed. Parallel calls never reserve the same amount twice. A transaction calls it once.
 */
export async function reserveForEach(
  ctx: Pick<BudgetCtx, 'clock' | 'settleNanoUsdPerDayMax' | 'tenant'>,
  tx: Tx,
  all: readonly GasWanted[],
): Promise<readonly number[]> {
  if (all.length === 0) return []
  const budget = { tenant: ctx.tenant, day: dayOf(ctx.clock.now()) }
  const taken = await lockGasTaken(tx, { ...budget, networks: all.map(({ network }) => network.name) })
  const fitting = all.map(({ network, nanoUsd: each, wanted }) => {
    const left = ctx.settleNanoUsdPerDayMax - (taken.get(network.name) ?? 0n)
    return each <= 0n ? wanted : left < each ? 0 : Number(least(BigInt(wanted), left / each))
  })
  await changeGas(
    tx,
    all.map(({ network, nanoUsd }, index) => {
      return { ...budget, network: network.name, nanoUsd: nanoUsd * BigInt(fitting[index] ?? 0) }
    }),
  )
  return fitting
}

/** Whether the budget has this much left now; only `reserveForEach` reserves it. */
export async function hasGasLeft(ctx: BudgetCtx & Pick<Ctx, 'db'>, network: Network, gas: bigint): Promise<boolean> {
  return (await gasLeft(ctx, network)) >= ctx.gasPrices.costOf(network, gas)
}

/** Returns the remaining budget of the day, in billionths of a US dollar. */
export async function gasLeft(
  ctx: Pick<BudgetCtx, 'tenant' | 'clock' | 'settleNanoUsdPerDayMax'> & Pick<Ctx, 'db'>,
  network: Network,
): Promise<bigint> {
  const taken = await listGasTaken(ctx.db, ctx.tenant, dayOf(ctx.clock.now()))
  return ctx.settleNanoUsdPerDayMax - (taken.get(network.name) ?? 0n)
}

function least(left: bigint, right: bigint): bigint {
  return left < right ? left : right
}

/** Shares of a quota, in percent, that are reported when they are reached. */
const thresholds = [80, 100] as const

export interface CountedUse {
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
  { kind, limit, used, exact }: CountedUse,
): Promise<void> {
  if (reachedBy(used, limit).length === 0) return
  const reachedAt = ctx.clock.now()
  const quota = { kind, limit, month: utcMonthOf(reachedAt) }
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
 * Counts what a transaction creates of a kind, one by default, or refuses all of it with the plan's limit error. The counter stays
 * locked until that transaction ends, so that parallel requests together never exceed the limit.
 */
export async function countOrRefuse(
  tx: Tx,
  ctx: Pick<Ctx, 'tenant' | 'clock' | 'upgradeUrl' | 'publish'>,
  kind: UsageKind,
  count = 1,
): Promise<void> {
  const period = periodOf(kind, ctx.clock.now())
  const limit = quotas[kind].allowanceOf(await planOf(tx, ctx.tenant.organisationId))
  const used = await lockCounter(tx, ctx.tenant, kind, period)
  if (limit !== unlimited && used + count > limit) throw limitError(ctx, quotas[kind].code, { limit, current: used })
  await addToCounter(tx, { tenant: ctx.tenant, kind, period, n: count })
  await reportThresholds(tx, ctx, { kind, limit, used: used + count })
}

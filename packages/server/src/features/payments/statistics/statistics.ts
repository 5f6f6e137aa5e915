import { formatAmount } from '@purser/protocol'
import type { Ctx } from '../../../platform/ctx.ts'
import { firstIdAt } from '../../../platform/db/page.ts'
import { failPlatform } from '../../../platform/errors.ts'
import { intervalSeconds, type Statistics, type StatisticsQuery } from './schema.ts'
import { findCut, listFailures, listIntervals, listLatencies } from './store.ts'

const intervalsMax = 200
/** Payments that one answer counts; the newest of the range. */
const paymentsMax = 200_000

/** Counts, sums, latencies and failures of the payments in a range, per interval of time. */
export async function paymentStatistics(ctx: Ctx, query: StatisticsQuery): Promise<Statistics> {
  const { from, to, interval } = query
  const seconds = intervalSeconds[interval]
  refuseRange(query, seconds)
  const range = { fromId: firstIdAt('plog', from.getTime()), toId: firstIdAt('plog', to.getTime()) }
  const cut = await findCut(ctx.db, ctx.tenant, range, paymentsMax)
  // The payment at the cut is itself not counted.
  const counted = cut === undefined ? range : { ...range, fromId: `${cut.logId}0` }
  const intervals = { from, seconds }
  const [counts, latencies, failures] = await Promise.all([
    listIntervals(ctx.db, ctx.tenant, counted, intervals),
    listLatencies(ctx.db, ctx.tenant, counted, intervals),
    listFailures(ctx.db, ctx.tenant, counted),
  ])
  const whole = latencies.find(({ at }) => at === null)
  return {
    from,
    to,
    interval,
    countedFrom: cut?.createdAt ?? from,
    intervals: counts.map(({ raw, decimals, payments, ...row }) => ({
      ...row,
      payments: Number(payments),
      amount: formatAmount(raw, decimals),
    })),
    settlement: {
      payments: Number(whole?.payments ?? 0),
      p50Ms: rounded(whole?.p50),
      p95Ms: rounded(whole?.p95),
      intervals: latencies.flatMap(({ at, payments, p50, p95 }) =>
        at === null || p50 === null || p95 === null
          ? []
          : [{ at, payments: Number(payments), p50Ms: Math.round(p50), p95Ms: Math.round(p95) }],
      ),
    },
    failures: failures.map(({ reason, payments }) => ({ reason, payments: Number(payments) })),
  }
}

function refuseRange({ from, to }: StatisticsQuery, seconds: number): void {
  const ms = to.getTime() - from.getTime()
  if (from.getTime() < 0 || ms <= 0) throw refused('/to', 'must be later than from')
  if (ms > intervalsMax * seconds * 1_000)
    throw refused('/interval', `must be longer: at most ${intervalsMax} intervals fit between from and to`)
}

function refused(path: string, message: string): Error {
  return failPlatform('validation-error', { errors: [{ path, message }] })
}

function rounded(ms: number | null | undefined): number | null {
  return ms === null || ms === undefined ? null : Math.round(ms)
}

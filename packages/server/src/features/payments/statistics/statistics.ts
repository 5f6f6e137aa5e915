import { formatAmount } from '@purser/protocol'
import { instantOf } from '../../../platform/clock.ts'
import { failPlatform } from '../../../platform/errors.ts'
import type { Ctx } from '../ports.ts'
import { quarterMs } from '../rollups/read-store.ts'
import { intervalSeconds, type Statistics, type StatisticsQuery } from './schema.ts'
import { findCut, listFailures, listIntervals, listLatencies } from './store.ts'

const intervalsMax = 200
/** Maximum number of payments that one response by the minute counts: the newest of the range. */
const paymentsMax = 200_000

/** Counts, sums, latencies and failures of the payments in a range, per interval of time. */
export async function paymentStatistics(ctx: Ctx, query: StatisticsQuery): Promise<Statistics> {
  const seconds = intervalSeconds[query.interval]
  refuseRange(query, seconds)
  const range = await rangeOf(ctx, query)
  const intervals = { from: range.from, seconds }
  const [counts, latencies, failures] = await Promise.all([
    listIntervals(ctx.db, ctx.tenant, range.counted, intervals),
    listLatencies(ctx.db, ctx.tenant, range.counted, intervals),
    listFailures(ctx.db, ctx.tenant, range.counted),
  ])
  const whole = latencies.find(({ beginsAt }) => beginsAt === null)
  return {
    from: range.from,
    to: range.to,
    interval: query.interval,
    countedFrom: range.counted.from,
    intervals: counts.map(({ beginsAt, raw, decimals, payments, ...row }) => ({
      ...row,
      at: beginsAt,
      payments: Number(payments),
      amount: formatAmount(raw, decimals),
    })),
    settlement: {
      ...(whole === undefined ? { payments: 0, p50Ms: null, p95Ms: null } : latencyOf(whole)),
      intervals: latencies.flatMap(({ beginsAt, ...row }) =>
        beginsAt === null ? [] : [{ at: beginsAt, ...latencyOf(row) }],
      ),
    },
    failures: failures.map(({ reason, payments }) => ({ reason, payments: Number(payments) })),
  }
}

/** The range with whole quarters of an hour, which rollups answer; by the minute, as it was given, with its newest payments. */
async function rangeOf(ctx: Ctx, { from, to, interval }: StatisticsQuery) {
  if (interval === 'minute') {
    const cut = await findCut(ctx.db, ctx.tenant, { from, to, grain: 'none' }, paymentsMax)
    // The payment at the cut is itself not counted.
    const countedFrom = cut === undefined ? from : instantOf(Math.max(from.getTime(), cut.getTime() + 1))
    return { from, to, counted: { from: countedFrom, to, grain: 'none' as const } }
  }
  const whole = {
    from: instantOf(Math.floor(from.getTime() / quarterMs) * quarterMs),
    to: instantOf(Math.ceil(to.getTime() / quarterMs) * quarterMs),
  }
  return { ...whole, counted: { ...whole, grain: 'quarter' as const } }
}

function latencyOf({ payments, p50, p95 }: { readonly payments: bigint; readonly p50: bigint; readonly p95: bigint }) {
  return { payments: Number(payments), p50Ms: Number(p50), p95Ms: Number(p95) }
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

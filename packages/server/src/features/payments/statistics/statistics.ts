import { formatAmount } from '@purser/protocol'
import { z } from 'zod'
import { instantOf } from '../../../platform/clock.ts'
import { failPlatform } from '../../../platform/errors.ts'
import { named } from '../../../platform/named.ts'
import { Instant, InstantInput, text } from '../../../platform/wire.ts'
import { gasByDay } from '../../plans/index.ts'
import { type Ctx, operation } from '../ports.ts'
import { quarterMs } from '../rollups/rollup-store.ts'
import { paymentStatuses } from '../schema.ts'
import { sumAttempts } from './attempt-store.ts'
import { findCut, listFailures, listIntervals, listLatencies } from './store.ts'

const intervalsMax = 200
const twoDaysMs = 2 * 86_400_000
/** Maximum number of payments that one response by the minute counts: the newest of the range. */
const paymentsMax = 200_000

/** Latencies of the whole range, whose row has no beginning, and of its intervals. */
function settlementOf(latencies: Awaited<ReturnType<typeof listLatencies>>): Statistics['settlement'] {
  const whole = latencies.find(({ beginsAt }) => beginsAt === null)
  return {
    ...(whole === undefined ? { payments: 0, p50Ms: null, p95Ms: null } : latencyOf(whole)),
    intervals: latencies.flatMap(({ beginsAt, ...row }) =>
      beginsAt === null ? [] : [{ at: beginsAt, ...latencyOf(row) }],
    ),
  }
}

/** Counts, sums, latencies and failures of the payments in a range, per interval of time. */
async function paymentStatistics(
  ctx: Pick<Ctx, 'db' | 'settleNanoUsdPerDayMax' | 'tenant'>,
  query: StatisticsQuery,
): Promise<Statistics> {
  const seconds = intervalSeconds[query.interval]
  refuseRange(query, seconds)
  const range = await rangeOf(ctx, query)
  const intervals = { from: range.from, seconds }
  const { route } = query
  const [counts, latencies, failures, attempts, gas] = await Promise.all([
    listIntervals(ctx.db, ctx.tenant, range.counted, { ...intervals, route }),
    listLatencies(ctx.db, ctx.tenant, range.counted, intervals),
    listFailures(ctx.db, ctx.tenant, range.counted),
    sumAttempts(ctx.db, ctx.tenant, range.counted),
    gasByDay(ctx.db, ctx.tenant, range),
  ])
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
    settlement: settlementOf(latencies),
    failures: failures.map(({ reason, payments }) => ({ reason, payments: Number(payments) })),
    challenges: Number(attempts.challenges),
    refused: Number(attempts.refused),
    gas: gas.map(({ nanoUsd, ...row }) => ({ ...row, usd: formatAmount(nanoUsd, nanoUsdDecimals) })),
    gasUsdPerDayMax: formatAmount(ctx.settleNanoUsdPerDayMax, nanoUsdDecimals),
  }
}

/** The range with whole quarters of an hour, which rollups cover; by the minute, as it was given, with its newest payments. */
async function rangeOf(ctx: Pick<Ctx, 'db' | 'tenant'>, { from, to, interval }: StatisticsQuery) {
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

const nanoUsdDecimals = 9

/** Seconds of one interval. */
const intervalSeconds = { minute: 60, hour: 3_600, day: 86_400 } as const

const StatisticsQuery = z.strictObject({
  from: InstantInput.describe('Start of the period (ISO 8601).'),
  to: InstantInput.describe('End of the period (ISO 8601), exclusive.'),
  interval: z.enum(['minute', 'hour', 'day']).meta({
    description:
      'Length of one interval; at most 200 fit between `from` and `to`. For hours and days, `from` is rounded down and `to` is rounded up to a quarter of an hour.',
  }),
  route: text(2_048).optional().describe('Only `intervals` of this paid route.'),
})
type StatisticsQuery = z.output<typeof StatisticsQuery>

const Milliseconds = z.int().meta({ description: 'From verification to settlement, to two digits.' })

export const Statistics = z.strictObject({
  from: Instant.describe('Start of the period.'),
  to: Instant.describe('End of the period, exclusive.'),
  interval: z.enum(['minute', 'hour', 'day']).describe('Length of one interval.'),
  countedFrom: Instant.meta({
    description:
      '`from`, or by the minute a later time where more than 200,000 payments follow: older ones are not counted.',
  }),
  intervals: z
    .array(
      z.strictObject({
        at: Instant.meta({ description: 'When the interval begins. Intervals without payments are left out.' }),
        protocol: z.enum(['x402', 'mpp']).describe('The protocol of the payments.'),
        token: z.string().describe('Symbol of the token.'),
        status: z.enum(paymentStatuses).describe('The present status of the payments.'),
        payments: z.int().describe('Number of payments.'),
        amount: z.string().meta({ description: 'Decimal amount in whole tokens.', example: '12.5' }),
      }),
    )
    .describe('Payments by interval, protocol, token and status.'),
  settlement: z
    .strictObject({
      payments: z.int().meta({ description: 'Payments that settled on a chain; stubs are not among them.' }),
      p50Ms: Milliseconds.nullable(),
      p95Ms: Milliseconds.nullable(),
      intervals: z
        .array(
          z.strictObject({
            at: Instant.describe('When the interval begins.'),
            payments: z.int().describe('Number of payments that settled on a chain.'),
            p50Ms: Milliseconds,
            p95Ms: Milliseconds,
          }),
        )
        .describe('The same for each interval.'),
    })
    .describe('How long settlements took.'),
  failures: z
    .array(
      z.strictObject({
        reason: z.string().nullable().describe('Code of the failure; null where none is known.'),
        payments: z.int().describe('Number of payments.'),
      }),
    )
    .meta({ description: 'Reasons of failed settlements, the most frequent first.' }),
  challenges: z.int().describe('Challenges that were issued, of the last 31 days.'),
  refused: z.int().describe('Credentials that were refused, of the last 31 days.'),
  gas: z
    .array(
      z.strictObject({
        day: z.string().describe('The UTC day.'),
        network: z.string().describe('The network.'),
        usd: z.string().describe('US dollars.'),
      }),
    )
    .describe('Gas that the operator paid or reserved, on the UTC days of the period.'),
  gasUsdPerDayMax: z.string().describe('Most gas of one day and network, in US dollars.'),
})
export type Statistics = z.input<typeof Statistics>

named({ PaymentStatistics: Statistics })

export const statisticsOperation = operation({
  id: 'payments.statistics',
  needs: { role: 'viewer', scope: 'read' },
  method: 'GET',
  path: '/payments/statistics',
  summary: 'Count payments per interval of time, with amounts, latency and reasons of failures.',
  description: 'For charts: an entry for each interval, protocol, token and status that has payments.',
  query: StatisticsQuery,
  output: Statistics,
  // By the minute it reads up to 200,000 payments three times, otherwise their sums by the quarter of an hour, up to about 10,000 of a day and key.
  cost: (_, { interval, from, to }) =>
    interval === 'minute' ? 20 : 5 + Math.max(0, Math.floor((to.getTime() - from.getTime()) / twoDaysMs)),
  run: (ctx, { query }) => paymentStatistics(ctx, query),
})

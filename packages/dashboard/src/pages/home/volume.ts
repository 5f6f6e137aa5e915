import type { PaymentStatistics } from '@purser/sdk'
import { addDecimals, groupDecimal } from '../../ui/format.ts'
import type { ChartPoint, Series } from '../../ui/time-chart.tsx'
import { rowsByTime, timesOf } from './figures.ts'

type Row = PaymentStatistics['intervals'][number]

/** The number of a chart: the number of payments, or the settled amount of one token. Amounts of several tokens are never added up. */
export type Measure = 'payments' | { readonly token: string }

interface Volume {
  readonly series: readonly Series[]
  readonly points: readonly ChartPoint[]
}

const colors = ['var(--chart-1)', 'var(--chart-2)', 'var(--chart-3)', 'var(--chart-4)'] as const

/** The tokens of settled payments, the one with the most payments first. */
export function tokensOf({ intervals }: PaymentStatistics): readonly string[] {
  const counts = new Map<string, number>()
  for (const { token, status, payments } of intervals)
    if (status === 'settled') counts.set(token, (counts.get(token) ?? 0) + payments)
  return [...counts].toSorted(([, one], [, other]) => other - one).map(([token]) => token)
}

/** The measure over time by protocol. */
export function byProtocol(statistics: PaymentStatistics, measure: Measure): Volume {
  const of = (protocol: Row['protocol']) => statistics.intervals.filter((row) => row.protocol === protocol)
  return volumeOf(statistics, measure, [
    { name: 'x402', rows: of('x402') },
    { name: 'MPP', rows: of('mpp') },
  ])
}

/** The measure over time for some routes, and for all others together. */
export function byRoute(
  statistics: PaymentStatistics,
  measure: Measure,
  routes: readonly { readonly name: string; readonly statistics: PaymentStatistics }[],
): Volume {
  const named = routes.map(({ name, statistics: own }) => ({ name, rows: own.intervals }))
  const others = { name: 'Others', rows: statistics.intervals, without: named.map(({ rows }) => rows) }
  return volumeOf(statistics, measure, [...named, others])
}

interface Part {
  readonly name: string
  readonly rows: readonly Row[]
  /** Rows of other parts that are in `rows` too. */
  readonly without?: readonly (readonly Row[])[]
}

function volumeOf(statistics: PaymentStatistics, measure: Measure, parts: readonly Part[]): Volume {
  const sums = parts.map(({ rows, without = [] }) => {
    const all = sumsOf(rows, measure)
    const taken = without.map((one) => sumsOf(one, measure))
    return (at: number) => addDecimals([all(at), ...taken.map((one) => `-${one(at)}`)])
  })
  const points = timesOf(statistics).map((at) => {
    const texts = sums.map((of) => atLeastZero(of(at)))
    return { at: new Date(at), values: texts.map(Number), words: texts.map((text) => worded(text, measure)) }
  })
  return {
    points,
    series: parts.map(({ name }, index) => ({ name, color: colors[index % colors.length] ?? colors[0] })),
  }
}

function sumsOf(rows: readonly Row[], measure: Measure): (at: number) => string {
  const byTime = rowsByTime(rows)
  return (at) => {
    const inside = byTime.get(at) ?? []
    if (measure === 'payments') return String(inside.reduce((sum, { payments }) => sum + payments, 0))
    const amounts = inside.filter(({ token, status }) => token === measure.token && status === 'settled')
    return addDecimals(amounts.map(({ amount }) => amount))
  }
}

/** Returns 0 for a negative difference: the total may have been read before a payment that a route already counts. */
function atLeastZero(decimal: string): string {
  return decimal.includes('-') ? '0' : decimal
}

function worded(decimal: string, measure: Measure): string {
  return measure === 'payments' ? groupDecimal(decimal) : `${groupDecimal(decimal)} ${measure.token}`
}

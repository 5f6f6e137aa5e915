import type { PaymentStatistics, Purser } from '@purser/sdk'
import { queryOptions } from '@tanstack/react-query'
import { addDecimals } from '../../ui/format.ts'
import { type RangeName, rangeStart } from '../../ui/range.ts'

const intervals = { '1h': 'minute', '24h': 'hour', '7d': 'hour', '30d': 'day' } as const
const intervalMs = { minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const

export const statisticsKey = ['statistics'] as const

export function statisticsQuery(purser: Purser, range: RangeName) {
  return queryOptions({
    queryKey: [...statisticsKey, range],
    queryFn: ({ signal }) => {
      const now = new Date()
      const to = new Date(now.getTime() + 60_000)
      return purser.payments.statistics(
        { from: rangeStart(range, now).toISOString(), to: to.toISOString(), interval: intervals[range] },
        { signal },
      )
    },
  })
}

/** The series of `points`, in their order. */
export const protocolSeries = [
  { name: 'x402', color: 'var(--chart-1)' },
  { name: 'MPP', color: 'var(--chart-2)' },
] as const

/** One point of a chart: when it begins, and a number for each series. */
interface Point {
  readonly at: Date
  readonly values: readonly number[]
}

export interface Figures {
  readonly payments: number
  readonly settled: number
  readonly open: number
  readonly failed: number
  /** The settled amount per token. */
  readonly revenue: readonly { readonly token: string; readonly amount: string }[]
  /** Payments per interval: x402, then MPP. */
  readonly points: readonly Point[]
  /** Share of what ended that ended well, from 0 to 1; undefined where nothing ended. */
  readonly success: number | undefined
}

/** Sums the rows of the statistics, and fills the intervals in which nothing happened. */
export function figuresOf({ from, to, interval, intervals: rows }: PaymentStatistics): Figures {
  const sum = (wanted: readonly string[]) =>
    rows.filter(({ status }) => wanted.includes(status)).reduce((total, { payments }) => total + payments, 0)
  const settled = sum(['settled'])
  const failed = sum(['settlement_failed'])
  const tokens = [...new Set(rows.filter(({ status }) => status === 'settled').map(({ token }) => token))]
  const revenue = tokens.map((token) => ({
    token,
    amount: addDecimals(
      rows.filter((row) => row.token === token && row.status === 'settled').map(({ amount }) => amount),
    ),
  }))
  const step = intervalMs[interval]
  const start = Date.parse(from)
  const length = Math.max(1, Math.ceil((Date.parse(to) - start) / step))
  const points = Array.from({ length }, (_, index) => {
    const at = new Date(start + index * step)
    const inside = rows.filter((row) => Date.parse(row.at) === at.getTime())
    const of = (name: string) =>
      inside.filter(({ protocol }) => protocol === name).reduce((total, row) => total + row.payments, 0)
    return { at, values: [of('x402'), of('mpp')] }
  })
  const ended = settled + failed
  return {
    payments: sum(['verified', 'settling', 'settled', 'settlement_failed', 'voided']),
    settled,
    open: sum(['verified', 'settling']),
    failed,
    revenue,
    points,
    success: ended === 0 ? undefined : settled / ended,
  }
}

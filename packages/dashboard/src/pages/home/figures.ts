import type { PaymentStatistics, Purser } from '@purser/sdk'
import { queryOptions } from '@tanstack/react-query'
import { addDecimals } from '../../ui/format.ts'
import { type RangeName, rangeStart } from '../../ui/range.ts'

const intervals = { '1h': 'minute', '24h': 'hour', '7d': 'hour', '30d': 'day' } as const
const intervalMs = { minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const

export const statisticsKey = ['statistics'] as const

/** Challenges and refused credentials have no event that would refresh the page. */
const refreshMs = 15_000

/** The statistics of a range; with a route, `intervals` has only its payments. */
export function statisticsQuery(purser: Purser, range: RangeName, paidRoute?: string) {
  return queryOptions({
    queryKey: [...statisticsKey, range, paidRoute ?? ''],
    queryFn: ({ signal }) => {
      const now = new Date()
      const to = new Date(now.getTime() + 60_000)
      return purser.payments.statistics(
        {
          from: rangeStart(range, now).toISOString(),
          to: to.toISOString(),
          interval: intervals[range],
          ...(paidRoute !== undefined && { route: paidRoute }),
        },
        { signal },
      )
    },
    refetchInterval: refreshMs,
  })
}

export interface Figures {
  readonly payments: number
  readonly settled: number
  readonly open: number
  readonly failed: number
  /** The settled amount per token. */
  readonly revenue: readonly { readonly token: string; readonly amount: string }[]
  /** Payments per interval. */
  readonly perInterval: readonly number[]
  /** Challenges that were issued, and credentials that were presented for them. */
  readonly issued: number
  readonly paid: number
  /** Share of the finished payments that were settled, from 0 to 1; undefined if none has finished. */
  readonly success: number | undefined
}

type Row = PaymentStatistics['intervals'][number]

/** Returns the beginnings of all intervals of a range, in Unix milliseconds. */
export function timesOf({ from, to, interval }: PaymentStatistics): readonly number[] {
  const step = intervalMs[interval]
  const start = Date.parse(from)
  const length = Math.max(1, Math.ceil((Date.parse(to) - start) / step))
  return Array.from({ length }, (_, index) => start + index * step)
}

/** The rows of each interval by when it begins. */
export function rowsByTime(rows: readonly Row[]): ReadonlyMap<number, readonly Row[]> {
  return Map.groupBy(rows, ({ at }) => Date.parse(at))
}

/** Sums the rows of the statistics. */
export function figuresOf(statistics: PaymentStatistics): Figures {
  const { intervals: rows, challenges, refused } = statistics
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
  const ended = settled + failed
  const byTime = rowsByTime(rows)
  const payments = rows.reduce((total, row) => total + row.payments, 0)
  return {
    payments,
    issued: challenges,
    paid: payments + refused,
    settled,
    open: sum(['verified', 'settling']),
    failed,
    revenue,
    perInterval: timesOf(statistics).map((at) =>
      (byTime.get(at) ?? []).reduce((total, row) => total + row.payments, 0),
    ),
    success: ended === 0 ? undefined : settled / ended,
  }
}

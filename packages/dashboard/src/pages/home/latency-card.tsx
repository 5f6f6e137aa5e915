import type { PaymentStatistics } from '@purser/sdk'
import { duration } from '../../ui/format.ts'
import { Card, Skeleton } from '../../ui/page.tsx'
import { Legend, TimeChart } from '../../ui/time-chart.tsx'
import { timesOf } from './figures.ts'

const series = [
  { name: 'p50', color: 'var(--chart-2)' },
  { name: 'p95', color: 'var(--chart-1)' },
] as const

/** A chart of the time that settlements took; intervals without one have no point. */
export function LatencyCard({ statistics, label }: { statistics: PaymentStatistics | undefined; label: string }) {
  return (
    <Card title="Time to settle" aside={<Legend series={series} />}>
      {statistics === undefined ? (
        <Skeleton lines={4} className="h-50" />
      ) : statistics.settlement.intervals.length === 0 ? (
        <p className="text-ink-2">No payment settled on a chain.</p>
      ) : (
        <TimeChart
          label={`Time from verification to settlement, ${label}`}
          kind="lines"
          axis={duration}
          series={series}
          points={pointsOf(statistics)}
        />
      )}
    </Card>
  )
}

function pointsOf(statistics: PaymentStatistics) {
  const byTime = new Map(statistics.settlement.intervals.map((one) => [Date.parse(one.at), one]))
  return timesOf(statistics).map((at) => {
    const { p50Ms = 0, p95Ms = 0 } = byTime.get(at) ?? {}
    const values = [p50Ms, p95Ms]
    return { at: new Date(at), values, words: values.map((ms) => (ms === 0 ? 'none' : duration(ms))) }
  })
}

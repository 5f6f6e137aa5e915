import type { PaymentStatistics } from '@purser/sdk'
import { useQueries, useQuery } from '@tanstack/react-query'
import { usePurser } from '../../api/context.ts'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Select } from '../../ui/form.tsx'
import { Card, Skeleton } from '../../ui/page.tsx'
import { type RangeName, rangeStart, ranges } from '../../ui/range.ts'
import { Legend, TimeChart } from '../../ui/time-chart.tsx'
import { shortRoute } from '../payments/columns.tsx'
import { statisticsKey, statisticsQuery } from './figures.ts'
import { byProtocol, byRoute, type Measure, tokensOf } from './volume.ts'

interface VolumeProps {
  readonly statistics: PaymentStatistics | undefined
  readonly range: RangeName
  /** The token that the reader chose, or `payments`; the token with the most payments without a choice. */
  readonly measure: string | undefined
  readonly by: 'protocol' | 'route'
  readonly onChange: (change: { readonly measure?: string; readonly by?: 'protocol' | 'route' }) => void
}

/** Number of routes that get their own series. */
const routesMax = 3

/** The income over time: an amount of one token, or the number of payments, by protocol or by route. */
export function VolumeCard({ statistics, range, measure, by, onChange }: VolumeProps) {
  const tokens = statistics === undefined ? [] : tokensOf(statistics)
  const token = measure === undefined ? tokens[0] : tokens.find((one) => one === measure)
  const shown: Measure = token === undefined ? 'payments' : { token }
  const top = useTopRoutes(range, { isWanted: by === 'route' })
  const volume =
    statistics === undefined
      ? undefined
      : by === 'protocol'
        ? byProtocol(statistics, shown)
        : top.routes && byRoute(statistics, shown, top.routes)
  const label = token === undefined ? 'Payments' : `Settled ${token}`
  return (
    <Card
      title={token === undefined ? 'Payments' : 'Volume'}
      aside={
        <span className="flex gap-2">
          <Select
            aria-label="Measure"
            value={token ?? 'payments'}
            onChange={({ target }) => onChange({ measure: target.value })}
          >
            {tokens.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
            <option value="payments">Payments</option>
          </Select>
          <Select
            aria-label="By"
            value={by}
            onChange={({ target }) => onChange({ by: target.value === 'route' ? 'route' : 'protocol' })}
          >
            <option value="protocol">by protocol</option>
            <option value="route">by route</option>
          </Select>
        </span>
      }
    >
      {volume === undefined && top.error !== null ? (
        <ErrorBlock error={top.error} onRetry={top.retry} />
      ) : volume === undefined ? (
        <Skeleton lines={8} className="h-56" />
      ) : (
        <>
          <div className="mb-2">
            <Legend series={volume.series} />
          </div>
          <TimeChart
            label={`${label} by ${by}, ${ranges[range].label.toLowerCase()}`}
            isWhole={token === undefined}
            {...volume}
          />
        </>
      )}
    </Card>
  )
}

/** The statistics of the routes with the most payments of the range; without `routes` until all are read. */
function useTopRoutes(range: RangeName, { isWanted }: { readonly isWanted: boolean }) {
  const purser = usePurser()
  const summary = useQuery({
    queryKey: [...statisticsKey, 'routes', range],
    queryFn: ({ signal }) =>
      purser.payments.logs.summary({ from: rangeStart(range, new Date()).toISOString() }, { signal }),
    enabled: isWanted,
  })
  const found = isWanted ? (summary.data ?? []) : []
  const names = [...new Set(found.flatMap(({ route }) => route ?? []))].slice(0, routesMax)
  const read = useQueries({ queries: names.map((name) => statisticsQuery(purser, range, name)) })
  const failed = isWanted ? [summary, ...read].filter(({ error }) => error !== null) : []
  const retry = () => {
    for (const one of failed) void one.refetch()
  }
  const routes = names.flatMap((name, index) => {
    const statistics = read[index]?.data
    return statistics === undefined ? [] : [{ name: shortRoute(name), statistics }]
  })
  const isWhole = summary.data !== undefined && routes.length === names.length
  return { routes: isWhole ? routes : undefined, error: failed[0]?.error ?? null, retry }
}

import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useWorkspace } from '../../api/context.ts'
import { useRefreshOn } from '../../live/use-live.ts'
import { buttonClasses } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { count, sentenceCase } from '../../ui/format.ts'
import { Card, Page, Skeleton } from '../../ui/page.tsx'
import { dayOfUtc } from '../../ui/time.ts'
import { Legend, TimeChart } from '../../ui/time-chart.tsx'
import { figuresOf, statisticsKey } from '../home/figures.ts'
import { byProtocol } from '../home/volume.ts'
import { isNearlyUsed, type Quota, Quotas, quotasOf, usageKey, usageQuery } from './quotas.tsx'

/** The page of the plan's usage in this environment, with the payments of each day of the month. */
export function UsagePage() {
  const { purser, environment } = useWorkspace()
  const usage = useQuery(usageQuery(purser))
  const from = usage.data?.period.start
  const to = usage.data?.period.end
  const days = useQuery({
    queryKey: [...statisticsKey, 'month', from],
    enabled: from !== undefined && to !== undefined,
    queryFn: ({ signal }) =>
      purser.payments.statistics({ from: from ?? '', to: to ?? '', interval: 'day' }, { signal }),
  })
  useRefreshOn(['payment.'], usageKey)
  useRefreshOn(['payment.'], statisticsKey)
  const quotas = quotasOf(usage.data)
  const figures =
    days.data === undefined ? undefined : { ...figuresOf(days.data), ...byProtocol(days.data, 'payments') }
  return (
    <Page
      title="Usage and plan"
      state={usage.data === undefined ? undefined : summaryOf(usage.data.plan, quotas)}
      action={
        <Link to="/settings/billing" className={buttonClasses(quotas.some(isNearlyUsed) ? 'primary' : 'secondary')}>
          See the plan
        </Link>
      }
    >
      <div className="grid gap-5 lg:grid-cols-side-main">
        <Card title={`Usage in ${environment}`}>
          {usage.error !== null ? (
            <ErrorBlock error={usage.error} onRetry={() => usage.refetch()} />
          ) : usage.data === undefined ? (
            <Skeleton lines={7} />
          ) : (
            <Quotas quotas={quotas} />
          )}
        </Card>
        {/* The month is that of the usage: without it there is nothing to wait for. */}
        {usage.error === null && (
          <Card title="Payments by day" aside={figures !== undefined && <Legend series={figures.series} />}>
            {days.error !== null ? (
              <ErrorBlock error={days.error} onRetry={() => days.refetch()} />
            ) : figures === undefined || from === undefined || to === undefined ? (
              <Skeleton lines={8} className="h-50" />
            ) : (
              <>
                <TimeChart
                  isWhole
                  label="Payments by protocol and day, this month"
                  points={figures.points}
                  series={figures.series}
                />
                <p className="mt-3 text-sm text-ink-2">
                  {count(figures.payments, 'payment')} from {dayOfUtc(new Date(from))} to{' '}
                  {dayOfUtc(new Date(Date.parse(to) - 1))}. Days and months begin at midnight UTC.
                </p>
              </>
            )}
          </Card>
        )}
      </div>
    </Page>
  )
}

function summaryOf(plan: string, quotas: readonly Quota[]): string {
  const name = `${sentenceCase(plan)} plan`
  const full = quotas.filter(({ used, limit }) => limit >= 0 && used >= limit)
  if (full.length > 0) return `${name}. Used up: ${full.map(({ label }) => label.toLowerCase()).join(', ')}.`
  const near = quotas.filter(isNearlyUsed)
  if (near.length > 0) return `${name}. Nearly used up: ${near.map(({ label }) => label.toLowerCase()).join(', ')}.`
  return `${name}. ${quotas.some(({ limit }) => limit >= 0) ? 'Nothing runs out soon.' : 'No count is limited.'}`
}

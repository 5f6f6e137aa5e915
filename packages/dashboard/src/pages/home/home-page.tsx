import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { usePurser } from '../../api/context.ts'
import { useRefreshOn } from '../../live/use-live.ts'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Select } from '../../ui/form.tsx'
import { count, groupDecimal } from '../../ui/format.ts'
import { Card, Page, Skeleton } from '../../ui/page.tsx'
import { isRange, type RangeName, rangeNames, ranges } from '../../ui/range.ts'
import { TestPaymentButton } from '../payments/test-payment.tsx'
import { FigureRow } from './figure-row.tsx'
import { type Figures, figuresOf, statisticsKey, statisticsQuery } from './figures.ts'
import { Funnel } from './funnel.tsx'
import { GasCard } from './gas-card.tsx'
import { LatencyCard } from './latency-card.tsx'
import { NeedsYou } from './needs-you.tsx'
import { RecentPayments } from './recent-payments.tsx'
import { VolumeCard } from './volume-card.tsx'
import { WalletBalances } from './wallet-balances.tsx'

const route = getRouteApi('/shell/')

/** The overview: revenue, problems, and work that waits for the person. */
export function HomePage() {
  const purser = usePurser()
  const navigate = useNavigate()
  const { range = '24h', measure, by = 'protocol' } = route.useSearch()
  const statistics = useQuery(statisticsQuery(purser, range))
  useRefreshOn(['payment.'], statisticsKey)
  const figures = statistics.data === undefined ? undefined : figuresOf(statistics.data)
  /** The statistics could not be loaded: shows the error in place of the figures. */
  const hasFailed = statistics.data === undefined && statistics.error !== null
  const choose = (next: string) => {
    if (isRange(next)) void navigate({ to: '/', search: (old) => ({ ...old, range: next }), replace: true })
  }
  return (
    <Page
      title="Home"
      state={figures === undefined ? undefined : summary(figures, range)}
      action={
        <>
          <Select aria-label="Range" value={range} onChange={({ target }) => choose(target.value)}>
            {rangeNames.map((name) => (
              <option key={name} value={name}>
                {ranges[name].label}
              </option>
            ))}
          </Select>
          <TestPaymentButton tone="primary" />
        </>
      }
    >
      <div className="flex flex-col gap-5">
        {!hasFailed && <FigureRow figures={figures} statistics={statistics.data} />}
        <div className="grid gap-5 lg:grid-cols-main-side">
          <div className="flex min-w-0 flex-col gap-5">
            {statistics.error !== null && <ErrorBlock error={statistics.error} onRetry={() => statistics.refetch()} />}
            {!hasFailed && (
              <>
                <VolumeCard
                  statistics={statistics.data}
                  range={range}
                  measure={measure}
                  by={by}
                  onChange={(change) =>
                    void navigate({
                      to: '/',
                      search: (old) => ({ ...old, ...change }),
                      replace: true,
                      resetScroll: false,
                    })
                  }
                />
                <div className="flex flex-wrap gap-5 *:min-w-72 *:flex-1">
                  <Card title="From challenge to settlement">
                    {figures === undefined || statistics.data === undefined ? (
                      <Skeleton lines={4} />
                    ) : (
                      <Funnel figures={figures} failures={statistics.data.failures} />
                    )}
                  </Card>
                  <LatencyCard statistics={statistics.data} label={ranges[range].label.toLowerCase()} />
                </div>
                <div className="flex flex-wrap gap-5 *:min-w-72 *:flex-1">
                  <WalletBalances />
                  <GasCard statistics={statistics.data} />
                </div>
              </>
            )}
            {hasFailed && <WalletBalances />}
          </div>
          <NeedsYou statistics={statistics.data} />
        </div>
        <Card
          flush
          title="Newest payments"
          aside={
            <Link to="/payments" className="text-sm text-accent-text hover:underline">
              All payments
            </Link>
          }
        >
          <RecentPayments />
        </Card>
      </div>
    </Page>
  )
}

function summary({ payments, settled, open, failed, revenue }: Figures, range: RangeName): string {
  const when = ranges[range].label.toLowerCase().replace('last', 'the last')
  if (payments === 0) return `No payments in ${when}.`
  const outcomes = [
    settled === payments ? 'all settled' : `${settled.toLocaleString('en-US')} settled`,
    settled > 0 && `worth ${revenue.map(({ amount, token }) => `${groupDecimal(amount)} ${token}`).join(' and ')}`,
    open > 0 && `${open.toLocaleString('en-US')} on the way`,
    failed > 0 && `${failed.toLocaleString('en-US')} failed`,
  ]
  return `${count(payments, 'payment')} in ${when}: ${outcomes.filter(Boolean).join(', ')}.`
}

import type { PaymentStatistics } from '@purser/sdk'
import type { ReactNode } from 'react'
import { duration } from '../../ui/format.ts'
import { Amount } from '../../ui/values.tsx'
import type { Figures } from './figures.ts'
import { Sparkline } from './sparkline.tsx'

/** Four figures of the range: revenue, number of payments, success rate and time to settle. */
export function FigureRow({
  figures,
  statistics,
}: {
  figures: Figures | undefined
  statistics: PaymentStatistics | undefined
}) {
  const settlement = statistics?.settlement
  const latencies = settlement?.intervals.map(({ p95Ms }) => p95Ms) ?? []
  return (
    <div className="grid grid-cols-2 gap-px overflow-hidden rounded-card border border-line bg-line max-sm:*:first:col-span-2 max-sm:*:last:col-span-2 xl:grid-cols-figures">
      <Figure name="Settled revenue" isReady={figures !== undefined}>
        <Revenue revenue={figures?.revenue ?? []} />
      </Figure>
      <Figure name="Payments" isReady={figures !== undefined} chart={<Sparkline values={figures?.perInterval ?? []} />}>
        {figures?.payments.toLocaleString('en-US')}
      </Figure>
      <Figure
        name="Success"
        isReady={figures !== undefined}
        note={figures?.success === undefined ? 'No payment has completed yet' : 'of completed payments'}
      >
        {figures?.success === undefined ? '–' : share(figures.success)}
      </Figure>
      <Figure
        name="Time to settle, p95"
        isReady={settlement !== undefined}
        chart={<Sparkline values={latencies} />}
        note={settlement?.p50Ms == null ? 'No payment settled on a chain' : `p50 ${duration(settlement.p50Ms)}`}
      >
        {settlement?.p95Ms == null ? '–' : duration(settlement.p95Ms)}
      </Figure>
    </div>
  )
}

function Figure({
  name,
  children,
  note,
  chart,
  isReady,
}: {
  name: string
  children: ReactNode
  note?: string
  chart?: ReactNode
  isReady: boolean
}) {
  return (
    <div className="flex min-h-26 min-w-0 flex-col bg-surface p-4 max-sm:min-h-22">
      <p className="text-sm text-ink-2">{name}</p>
      {isReady ? (
        <div className="mt-1 flex items-end justify-between gap-3">
          <div className="num min-w-0 text-2xl font-semibold tracking-tight">{children}</div>
          <span className="max-sm:hidden">{chart}</span>
        </div>
      ) : (
        <span className="skeleton mt-2 h-7 w-28" />
      )}
      {isReady && note !== undefined && <p className="mt-auto pt-1 text-sm text-ink-3">{note}</p>}
    </div>
  )
}

/**
 * The revenue in the token with the most payments, and the other tokens in a line below. Amounts of different tokens
 * are never added up.
 */
function Revenue({ revenue }: { revenue: Figures['revenue'] }) {
  const [first, ...others] = revenue
  if (first === undefined) return <>0</>
  return (
    <>
      <span className={first.amount.length > 20 ? 'text-sm' : first.amount.length > 12 ? 'text-xl' : ''}>
        <Amount value={first.amount} token={first.token} />
      </span>
      {others.map(({ amount, token }) => (
        <p key={token} className="text-sm font-normal tracking-normal text-ink-2">
          <Amount value={amount} token={token} />
        </p>
      ))}
    </>
  )
}

/** Formats a rate in percent with one decimal, rounded down, so that only a complete success is 100 %. */
function share(success: number): string {
  return success === 1 ? '100 %' : `${(Math.floor(success * 1_000) / 10).toFixed(1)} %`
}

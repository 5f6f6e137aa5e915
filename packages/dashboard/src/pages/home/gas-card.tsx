import type { PaymentStatistics } from '@purser/sdk'
import { addDecimals, groupDecimal, networkName } from '../../ui/format.ts'
import { Card, Skeleton } from '../../ui/page.tsx'
import { dayOfUtc } from '../../ui/time.ts'

/** The gas that the operator paid in the range, by network. Days are those of UTC, by which gas is counted. */
export function GasCard({ statistics }: { statistics: PaymentStatistics | undefined }) {
  return (
    <Card title="Gas paid by the operator">
      {statistics === undefined ? <Skeleton lines={3} /> : <Gas gas={statistics.gas} from={statistics.from} />}
    </Card>
  )
}

function Gas({ gas, from }: Pick<PaymentStatistics, 'gas' | 'from'>) {
  const since = `Since ${dayOfUtc(new Date(from))} (UTC), for payments, sweeps and gasless transfers.`
  if (gas.length === 0) return <p className="text-ink-2">None. {since}</p>
  const networks = [...Map.groupBy(gas, ({ network }) => network)]
  return (
    <div className="flex flex-col gap-2">
      <p className="num text-xl font-semibold tracking-tight">{dollars(gas)}</p>
      <ul className="flex flex-col gap-1">
        {networks.map(([network, rows]) => (
          <li key={network} className="flex justify-between gap-3">
            <span className="min-w-0 truncate">{networkName(network)}</span>
            <span className="num text-ink-2">{dollars(rows)}</span>
          </li>
        ))}
      </ul>
      <p className="text-sm text-ink-3">{since}</p>
    </div>
  )
}

function dollars(rows: PaymentStatistics['gas']): string {
  return `${groupDecimal(addDecimals(rows.map(({ usd }) => usd)))} USD`
}

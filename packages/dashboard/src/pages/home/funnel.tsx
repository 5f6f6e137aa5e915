import type { PaymentStatistics } from '@purser/sdk'
import { count } from '../../ui/format.ts'
import { type MoneyState, StateIcon } from '../../ui/state.tsx'
import { failureWords } from '../payments/payment-state.ts'
import type { Figures } from './figures.ts'

interface Bar {
  readonly name: string
  readonly payments: number
  readonly state: MoneyState
  readonly color: string
}

/** The outcomes of the signed payments, as bars with their shares, and the reasons of failures. */
export function Funnel({ figures, failures }: { figures: Figures; failures: PaymentStatistics['failures'] }) {
  const { payments, settled, open, failed } = figures
  const bars: readonly Bar[] = [
    { name: 'Verified', payments, state: 'settled', color: 'var(--chart-1)' },
    { name: 'Settled', payments: settled, state: 'settled', color: 'var(--settled)' },
    { name: 'On the way', payments: open, state: 'pending', color: 'var(--pending)' },
    { name: 'Failed', payments: failed, state: 'failed', color: 'var(--failed)' },
  ]
  return (
    <div className="flex flex-col gap-3">
      {bars.map((bar) => (
        <div key={bar.name} className="grid grid-cols-bar items-center gap-3">
          <span className="flex items-center gap-1.5">
            <StateIcon state={bar.state} /> {bar.name}
          </span>
          <span className="h-2.5 overflow-hidden rounded-full bg-well">
            <span
              className="block h-full rounded-full"
              style={{ width: `${payments === 0 ? 0 : (bar.payments / payments) * 100}%`, background: bar.color }}
            />
          </span>
          <span className="num text-right text-ink-2">{bar.payments.toLocaleString('en-US')}</span>
        </div>
      ))}
      {failures.length > 0 && (
        <ul className="mt-1 flex flex-col gap-1 border-t border-line pt-3 text-ink-2">
          {failures.map(({ reason, payments: number }) => (
            <li key={reason}>
              <span className="num font-medium text-ink">{count(number, 'payment')}</span>: {failureWords(reason)}
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}

import type { PaymentStatistics } from '@purser/sdk'
import { count } from '../../ui/format.ts'
import { failureWords } from '../payments/payment-state.ts'
import type { Figures } from './figures.ts'

interface Step {
  readonly name: string
  readonly number: number
  readonly color: string
  /** The loss on the way to the next step, in words. */
  readonly lost?: string | false
}

/** The funnel from challenge to settlement: four bars, the losses between them, and the reasons of failures. */
export function Funnel({ figures, failures }: { figures: Figures; failures: PaymentStatistics['failures'] }) {
  const { issued, paid, payments, settled, open, failed } = figures
  const refused = paid - payments
  const ended = [
    open > 0 && `${open.toLocaleString('en-US')} on the way`,
    failed > 0 && `${share(failed, payments)} failed`,
  ]
  const steps: readonly Step[] = [
    {
      name: '402 issued',
      number: issued,
      color: 'var(--chart-1)',
      lost: issued > paid && `${share(issued - paid, issued)} not paid`,
    },
    { name: 'Paid', number: paid, color: 'var(--chart-1)', lost: refused > 0 && `${share(refused, paid)} refused` },
    { name: 'Verified', number: payments, color: 'var(--chart-1)', lost: ended.filter(Boolean).join(', ') },
    { name: 'Settled', number: settled, color: 'var(--settled)' },
  ]
  const most = Math.max(1, issued, paid)
  return (
    <div className="flex flex-col gap-1.5">
      {steps.map(({ name, number, color, lost }) => (
        <div key={name}>
          <div className="grid grid-cols-bar items-center gap-3">
            <span>{name}</span>
            <span className="h-2.5 overflow-hidden rounded-full bg-well">
              <span
                className="block h-full rounded-full"
                style={{ width: `${(number / most) * 100}%`, background: color }}
              />
            </span>
            <span className="num text-right text-ink-2">{number.toLocaleString('en-US')}</span>
          </div>
          {lost !== undefined && lost !== false && lost !== '' && (
            <p className="grid grid-cols-bar gap-3 text-sm text-ink-3">
              <span />
              <span className="col-span-2">↓ {lost}</span>
            </p>
          )}
        </div>
      ))}
      {failures.length > 0 && (
        <ul className="mt-1.5 flex flex-col gap-1 border-t border-line pt-3 text-ink-2">
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

/** To a tenth of a percent; what is less than all never becomes 100. */
function share(part: number, whole: number): string {
  if (part === whole) return '100 %'
  return `${(Math.floor((part / whole) * 1_000) / 10).toLocaleString('en-US')} %`
}

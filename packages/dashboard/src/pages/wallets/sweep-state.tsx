import type { Sweep, SweepSummary } from '@purser/sdk'
import { type MoneyState, StateBadge } from '../../ui/state.tsx'

type SweepChild = Sweep['children'][number]

const childStates: Readonly<Record<SweepChild['status'], { readonly state: MoneyState; readonly word: string }>> = {
  pending: { state: 'pending', word: 'Waits' },
  sent: { state: 'pending', word: 'On its way' },
  swept: { state: 'settled', word: 'Swept' },
  failed: { state: 'failed', word: 'Failed' },
}

export function SweepChildBadge({ status }: Pick<SweepChild, 'status'>) {
  const { state, word } = childStates[status]
  return <StateBadge state={state}>{word}</StateBadge>
}

export function SweepBadge({ sweep }: { sweep: SweepSummary }) {
  if (sweep.status === 'sweeping') return <StateBadge state="pending">Sweeping</StateBadge>
  if (sweep.childCount === 0) return <StateBadge state="void">Nothing to sweep</StateBadge>
  return sweep.sweptAmount === sweep.amount ? (
    <StateBadge state="settled">Swept</StateBadge>
  ) : (
    <StateBadge state="failed">{isSome(sweep.sweptAmount) ? 'Partly failed' : 'Failed'}</StateBadge>
  )
}

function isSome(amount: string): boolean {
  return /[1-9]/.test(amount)
}

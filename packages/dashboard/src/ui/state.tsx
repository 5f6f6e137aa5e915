import { Ban, CircleCheck, CircleX, Clock, type LucideIcon, PauseCircle } from 'lucide-react'
import type { ReactNode } from 'react'
import { classes } from './classes.ts'

/** The five states of money, the same on every page. */
export type MoneyState = 'settled' | 'pending' | 'held' | 'failed' | 'void'

const looks: Readonly<Record<MoneyState, { readonly icon: LucideIcon; readonly tone: string; readonly text: string }>> =
  {
    settled: { icon: CircleCheck, tone: 'bg-settled-soft text-settled', text: 'text-settled' },
    pending: { icon: Clock, tone: 'bg-pending-soft text-pending', text: 'text-pending' },
    held: { icon: PauseCircle, tone: 'bg-held-soft text-held', text: 'text-held' },
    failed: { icon: CircleX, tone: 'bg-failed-soft text-failed', text: 'text-failed' },
    void: { icon: Ban, tone: 'bg-void-soft text-void', text: 'text-void' },
  }

interface StateBadgeProps {
  readonly state: MoneyState
  readonly children?: ReactNode
  /** For something other than money, where the icon of the money's state would mislead. */
  readonly icon?: LucideIcon
}

/** Word, icon and color, never a color alone. `children` replaces the default word of the state. */
export function StateBadge({ state, children, icon }: StateBadgeProps) {
  const { tone } = looks[state]
  const Icon = icon ?? looks[state].icon
  return (
    <span
      className={classes(
        'inline-flex h-5.5 items-center gap-1 rounded-full pr-2 pl-1.5 text-xs font-medium whitespace-nowrap',
        tone,
      )}
    >
      <Icon className="size-3.5" aria-hidden />
      {children ?? wordOf(state)}
    </span>
  )
}

/** The state's icon in its color, for places that say the word beside it. */
export function StateIcon({ state, className }: { state: MoneyState; className?: string }) {
  const { icon: Icon, text } = looks[state]
  return <Icon className={classes('size-4 shrink-0', text, className)} aria-hidden />
}

function wordOf(state: MoneyState): string {
  return { settled: 'Settled', pending: 'Pending', held: 'On hold', failed: 'Failed', void: 'Void' }[state]
}

/** A label for a state of something other than money. */
export function Tag({ children, mono = false }: { children: ReactNode; mono?: boolean }) {
  return (
    <span
      className={classes(
        'inline-flex h-5 items-center rounded-sm border border-line bg-well px-1.5 text-xs whitespace-nowrap text-ink-2',
        mono && 'font-mono',
      )}
    >
      {children}
    </span>
  )
}

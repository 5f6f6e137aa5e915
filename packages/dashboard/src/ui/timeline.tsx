import type { ReactNode } from 'react'
import { duration } from './format.ts'
import { type MoneyState, StateIcon } from './state.tsx'
import { Time } from './values.tsx'

export interface TimelineStep {
  readonly key: string
  readonly state: MoneyState
  readonly title: ReactNode
  /** Time of the step; omitted if it has not happened yet. */
  readonly at?: string | null | undefined
  readonly children?: ReactNode
}

/** The steps in order, with the time between them. */
export function Timeline({ steps }: { steps: readonly TimelineStep[] }) {
  return (
    <ol className="flex flex-col">
      {steps.map((step, index) => (
        <li key={step.key} className="relative flex gap-3 pb-5 last:pb-0">
          {index < steps.length - 1 && (
            <span className="absolute top-5 bottom-0 left-2 w-px -translate-x-1/2 bg-line-strong" />
          )}
          <StateIcon state={step.state} className="relative mt-0.5 bg-surface" />
          <div className="min-w-0 flex-1">
            <p className="flex flex-wrap items-baseline justify-between gap-x-3">
              <span className="font-medium">{step.title}</span>
              {step.at !== undefined && step.at !== null && (
                <span className="text-sm text-ink-3">
                  <Between from={steps.slice(0, index).findLast(({ at }) => at != null)?.at} to={step.at} />{' '}
                  <Time at={step.at} />
                </span>
              )}
            </p>
            {step.children !== undefined && <div className="mt-0.5 text-ink-2">{step.children}</div>}
          </div>
        </li>
      ))}
    </ol>
  )
}

function Between({ from, to }: { from: string | null | undefined; to: string }) {
  if (from === null || from === undefined) return null
  const ms = Date.parse(to) - Date.parse(from)
  return ms > 0 ? <span className="num">+{duration(ms)} ·</span> : null
}

import type { Transfer } from '@purser/sdk'
import { Link } from '@tanstack/react-router'
import type { TimelineStep } from '../../ui/timeline.tsx'
import { Time } from '../../ui/values.tsx'
import { approvalStates } from './approval-state.tsx'

const titles = {
  waiting: 'Waits for a person',
  granted: 'A person approved it',
  refused: 'A person declined it',
  canceled: 'The requester canceled it',
  expired: 'Nobody approved it in time',
} as const

/** The step of a movement that a policy lets through only when a person approves it; none where no person is needed. */
export function approvalSteps(approval: Transfer['approval']): readonly TimelineStep[] {
  if (approval === null) return []
  const { id, status, expiresAt } = approval
  const children = (
    <p className="flex flex-wrap gap-x-3">
      <Link to="/approvals/$approvalId" params={{ approvalId: id }} className="text-accent-text hover:underline">
        Open the approval
      </Link>
      {status === 'waiting' && (
        <span className="text-ink-3">
          expires <Time at={expiresAt} full />
        </span>
      )}
    </p>
  )
  return [{ key: 'approval', state: approvalStates[status].state, title: titles[status], children }]
}

import type { Transfer } from '@purser/sdk'
import { Link } from '@tanstack/react-router'
import type { TimelineStep } from '../../ui/timeline.tsx'
import { Time } from '../../ui/values.tsx'
import { approvalStates } from './approval-state.tsx'

const titles = {
  waiting: 'Waiting for approval',
  granted: 'Approved',
  refused: 'Declined',
  canceled: 'Canceled by the requester',
  expired: 'Expired without a decision',
} as const

/** The approval step of a transfer or withdrawal; none if it needs no approval. */
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

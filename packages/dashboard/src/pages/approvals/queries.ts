import type { Approval, Purser } from '@purser/sdk'
import { queryOptions } from '@tanstack/react-query'

export const approvalsKey = ['approvals'] as const

/** The badge shows a larger number as `20+`. */
export const shownWaitingMax = 20

/** The approvals that wait for a decision, newest first. */
export function waitingQuery(purser: Purser) {
  return queryOptions({
    queryKey: [...approvalsKey, 'waiting'],
    queryFn: ({ signal }) =>
      purser.approvals.list({ status: 'waiting', limit: shownWaitingMax + 1 }, { signal }).page(),
  })
}

export function approvalQuery(purser: Purser, approvalId: string) {
  return queryOptions({
    queryKey: [...approvalsKey, 'one', approvalId],
    queryFn: ({ signal }) => purser.approvals.get(approvalId, { signal }),
  })
}

export type { Approval }

import { sentenceCase } from '../../ui/format.ts'
import { type MoneyState, StateBadge } from '../../ui/state.tsx'
import type { Approval } from './queries.ts'

export const approvalStates: Readonly<
  Record<Approval['status'], { readonly state: MoneyState; readonly word: string }>
> = {
  waiting: { state: 'held', word: 'Waiting' },
  granted: { state: 'settled', word: 'Approved' },
  refused: { state: 'failed', word: 'Declined' },
  canceled: { state: 'void', word: 'Canceled' },
  expired: { state: 'void', word: 'Expired' },
}

export function ApprovalBadge({ status }: Pick<Approval, 'status'>) {
  const { state, word } = approvalStates[status]
  return <StateBadge state={state}>{word}</StateBadge>
}

/** The kind of the request: `Transfer`, `Refund` or `Withdrawal`. */
export function kindWord({ kind }: Pick<Approval, 'kind'>): string {
  return sentenceCase(kind)
}

/** The requester: a key by its name with the person behind it, or a person. */
export function requester({ apiKeyName, apiKeyId, email }: Approval['requestedBy']): string {
  return apiKeyId === null ? email : `${apiKeyName ?? 'An API key'} (key of ${email})`
}

/** The path of the page that shows the requested transfer or withdrawal. */
export function subjectPath({ transferId, withdrawalId }: Approval): string | undefined {
  if (withdrawalId !== null) return `/withdrawals/${withdrawalId}`
  return transferId === null ? undefined : `/transfers/${transferId}`
}

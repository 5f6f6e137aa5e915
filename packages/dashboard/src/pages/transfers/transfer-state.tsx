import type { Transfer } from '@purser/sdk'
import { sentenceCase } from '../../ui/format.ts'
import { type MoneyState, StateBadge } from '../../ui/state.tsx'

const states: Readonly<Record<string, { readonly state: MoneyState; readonly word: string }>> = {
  pending: { state: 'pending', word: 'On its way' },
  confirmed: { state: 'settled', word: 'Arrived' },
  failed: { state: 'failed', word: 'Failed' },
}

const waiting = { state: 'held', word: 'Needs approval' } as const

export function TransferBadge({ status, approval }: Pick<Transfer, 'status' | 'approval'>) {
  const { state, word } = isWaiting(approval)
    ? waiting
    : (states[status] ?? { state: 'held', word: sentenceCase(status) })
  return <StateBadge state={state}>{word}</StateBadge>
}

/** Whether nothing moves until a person approves it. */
export function isWaiting(approval: Transfer['approval']): boolean {
  return approval?.status === 'waiting'
}

/** Returns a sentence that says where the money is now. */
export function whereTransferIs({ status, txHash, reason, refundTxHash, approval }: Transfer): string {
  if (isWaiting(approval)) return 'It waits for an approval. No money has moved.'
  if (status === 'confirmed') return 'The recipient has the money. The transfer is final.'
  if (status === 'failed') {
    const why = reason === null ? '' : ` Reason: ${sentenceCase(reason).toLowerCase()}.`
    return refundTxHash === null
      ? `The recipient received nothing.${why}`
      : `The recipient received nothing. The money is back in the wallet.${why}`
  }
  return txHash === null
    ? 'It waits for its transaction to be sent.'
    : 'Its transaction was sent. The transfer completes when the network confirms it.'
}

/** Describes the route. The partner's own reason follows; a direct transfer has none to add. */
export function routeWords({ route, routeReason }: Pick<Transfer, 'route' | 'routeReason'>): string {
  const words = { direct: 'Direct', 'partner-swap': 'Swap by a partner', 'partner-bridge': 'Bridge by a partner' }[
    route
  ]
  return route === 'direct' || routeReason === '' ? words : `${words}: ${routeReason}`
}

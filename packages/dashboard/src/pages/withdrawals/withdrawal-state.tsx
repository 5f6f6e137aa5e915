import type { Withdrawal } from '@purser/sdk'
import { sentenceCase } from '../../ui/format.ts'
import { type MoneyState, StateBadge } from '../../ui/state.tsx'

const states: Readonly<Record<string, { readonly state: MoneyState; readonly word: string }>> = {
  pending_conversion: { state: 'pending', word: 'Converting' },
  conversion_complete: { state: 'pending', word: 'Paying the bank' },
  completed: { state: 'settled', word: 'Paid' },
  failed: { state: 'failed', word: 'Failed' },
}

const waiting = { state: 'held', word: 'Needs approval' } as const

export function WithdrawalBadge({ status, approval }: Pick<Withdrawal, 'status' | 'approval'>) {
  const { state, word } =
    approval?.status === 'waiting' ? waiting : (states[status] ?? { state: 'held', word: sentenceCase(status) })
  return <StateBadge state={state}>{word}</StateBadge>
}

const refunds: Readonly<Record<string, string>> = {
  none: 'No tokens had left the wallet.',
  expected: 'The tokens are on their way back to the wallet.',
  done: 'The payout partner reports that it sent the tokens back to the wallet.',
  held: 'The payout partner still has the tokens. The operator of this service must resolve it with the partner.',
}

/** Describes where the tokens of a failed withdrawal are. */
export function refundWords({ refund }: Pick<Withdrawal, 'refund'>): string | undefined {
  return refund === null ? undefined : refunds[refund]
}

/** Returns a sentence that says where the money is now. */
export function whereWithdrawalIs(withdrawal: Withdrawal): string {
  const { status, reason, estimatedDays, token, txHash } = withdrawal
  if (withdrawal.approval?.status === 'waiting') return 'It waits for an approval. No money has moved.'
  if (status === 'completed') return 'The payout partner reports that the bank was paid.'
  if (status === 'conversion_complete')
    return `The ${token} is converted, and the bank is being paid. That takes about ${estimatedDays === 1 ? 'a day' : `${estimatedDays} days`}.`
  if (status === 'failed') {
    const why = reason === null ? '' : ` Reason: ${sentenceCase(reason).toLowerCase()}.`
    return ['The bank was not paid.', why.trim(), refundWords(withdrawal)].filter(Boolean).join(' ')
  }
  return txHash === null
    ? `The ${token} is about to leave the wallet.`
    : `The ${token} is with the partner, which converts it.`
}

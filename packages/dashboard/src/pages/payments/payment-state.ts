import type { Payment, PaymentStatus } from '@purser/sdk'
import { sentenceCase } from '../../ui/format.ts'
import type { MoneyState } from '../../ui/state.tsx'

interface Stated {
  readonly state: MoneyState
  readonly word: string
}

const states: Readonly<Record<PaymentStatus, Stated>> = {
  verified: { state: 'pending', word: 'Verified' },
  settling: { state: 'pending', word: 'Settling' },
  settled: { state: 'settled', word: 'Settled' },
  settlement_failed: { state: 'failed', word: 'Failed' },
  voided: { state: 'void', word: 'Void' },
}

/** Returns the state of money that a payment is in, one of five, and the word for it. */
export function paymentState(status: PaymentStatus): Stated {
  return states[status]
}

/** Whether a stub paid it: a settled payment without a transaction. */
export function isSimulated({ status, txHash }: Pick<Payment, 'status' | 'txHash'>): boolean {
  return status === 'settled' && txHash === null
}

/** Returns a sentence that says where the money is now, and why. */
export function whereItIs(payment: Payment): string {
  const { status, failureReason, token } = payment
  if (isSimulated(payment)) return 'A simulated payment of the test environment: no chain was involved.'
  if (status === 'settled') return 'The money has moved to your wallet.'
  if (status === 'settling')
    return 'The transaction is on its way to the chain. The payment is settled when a block includes it.'
  if (status === 'verified')
    return `The payer has signed it. No ${token} has moved yet: the payment waits for settlement.`
  if (status === 'voided') return 'It was voided before any money moved.'
  return `No money moved: ${failureWords(failureReason)}`
}

const failures: Readonly<Record<string, string>> = {
  insufficient_funds: 'the payer no longer had enough when it was settled.',
  transaction_expired: 'the transaction expired before a block included it.',
  transaction_reverted: 'the chain refused the transaction.',
  expired: 'the signature expired before it reached the chain.',
  authorization_expired: 'the signature expired before it reached the chain.',
  authorization_used: 'the signature had been used by another transaction.',
  reverted: 'the chain refused the transaction.',
}

/** The reason of a failure as a sentence; one that has no sentence yet is shown as it is. */
export function failureWords(reason: string | null): string {
  if (reason === null) return 'the chain returned no reason.'
  return failures[reason.replaceAll('-', '_')] ?? `${sentenceCase(reason).toLowerCase()}.`
}

import { isProblem } from '../../../platform/errors.ts'
import type { Claim } from './scheme.ts'

/** Why a payment is not taken, in the protocol's words, for an answer that is 200 all the same. */
export interface Refusal {
  readonly reason: string
  readonly message: string | undefined
  readonly payer: string | undefined
}

/**
 * What a thrown value means as an answer of the facilitator, or undefined when it is none: a node that fails, a limit or a fault of ours stays the problem that it is, so that
 * nobody takes it for a bad payment.
 */
export function refusalOf(
  thrown: unknown,
  claim: { readonly payer: string | undefined; readonly usedReason?: Claim['usedReason'] } | undefined,
): Refusal | undefined {
  const payer = claim?.payer
  if (isProblem(thrown, 'duplicate-payment'))
    return { reason: claim?.usedReason ?? 'invalid_exact_evm_nonce_already_used', message: undefined, payer }
  if (isProblem(thrown, 'amount-below-minimum'))
    return { reason: 'invalid_payment_requirements', message: thrown.entry.detail, payer }
  if (!isProblem(thrown, 'payment-verification-failed')) return undefined
  const { reason, message, payer: named } = thrown.members
  return { reason: String(reason), message: textOf(message), payer: textOf(named) ?? payer }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

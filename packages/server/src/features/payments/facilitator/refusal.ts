import { isProblem } from '../../../platform/errors.ts'
import { unstorableText, unstorableTexts } from '../../../platform/wire.ts'
import { refused } from '../credential.ts'
import { objectOf } from './paid-resource.ts'
import type { FacilitatorBody, SettleAnswer, VerifyAnswer } from './schema.ts'
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

/**
 * The protocol's members beside a problem record of verify, so that official clients parse it as an answer. The reason names a fault of
 * the payer's alone; limits and outages of the seller are the protocol's own general reason, because servers show it to buyers.
 */
export function verifyRefusal(problem: { readonly type: string }): VerifyAnswer {
  return { isValid: false, invalidReason: reasonOf(problem, 'unexpected_verify_error') }
}

/** The same for settle: nothing was sent for the request that is refused. */
export function settleRefusal(problem: { readonly type: string }, body: unknown): SettleAnswer {
  const network = objectOf(objectOf(body).paymentRequirements).network
  return {
    success: false,
    errorReason: reasonOf(problem, 'unexpected_settle_error'),
    transaction: '',
    network: textOf(network) ?? '',
  }
}

const payersFaults: Readonly<Record<string, string>> = {
  'validation-error': 'invalid_payload',
  'malformed-json': 'invalid_payload',
  'payload-too-large': 'invalid_payload',
  'payment-identifier-conflict': 'payment_identifier_conflict',
}

function reasonOf({ type }: { readonly type: string }, other: string): string {
  return payersFaults[type.slice(type.lastIndexOf('/') + 1)] ?? other
}

/** Refuses text that PostgreSQL cannot hold as the protocol does: such a payment was never signed for anything that is sold here. */
export function refuseUnstorableText(body: FacilitatorBody): void {
  const [path] = unstorableTexts(body, 1)
  if (path !== undefined) throw refused('invalid_payload', { message: `/${path.join('/')} ${unstorableText}` })
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

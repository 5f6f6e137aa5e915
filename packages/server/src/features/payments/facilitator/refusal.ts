import { isProblem } from '../../../platform/errors.ts'
import { unstorableText, unstorableTexts } from '../../../platform/wire.ts'
import { refused } from '../credential.ts'
import type { ReadCredential } from '../methods/method.ts'
import { objectOf } from './paid-resource.ts'
import type { FacilitatorBody, SettleResponse, VerifyResponse } from './schema.ts'

/** The reason why a payment is refused, in the protocol's words. The response is still 200. */
export interface X402Refusal {
  readonly reason: string
  readonly message: string | undefined
  readonly payer: string | undefined
}

/**
 * Maps a thrown value to a refusal of the facilitator; undefined if it is none. A failing node, a limit or an internal fault
 * stays a problem record, so that it is not mistaken for a bad payment.
 */
export function refusalOf(
  thrown: unknown,
  claim: { readonly payer: string | undefined; readonly usedReason?: ReadCredential['usedReason'] } | undefined,
): X402Refusal | undefined {
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
 * Returns the protocol's members that a problem record of verify also carries, so that official clients can parse it. The reason
 * names only faults of the payer. Limits and outages of the seller become the protocol's general reason, because servers show it
 * to buyers.
 */
export function verifyRefusal(problem: { readonly type: string }): VerifyResponse {
  return { isValid: false, invalidReason: reasonOf(problem, 'unexpected_verify_error') }
}

/** Returns the protocol's members for a problem record of settle. Nothing was sent for the refused request. */
export function settleRefusal(problem: { readonly type: string }, body: unknown): SettleResponse {
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

/**
 * Refuses text that PostgreSQL cannot store, with the protocol's own refusal. No payment for a resource sold here was signed with
 * such text.
 */
export function refuseUnstorableText(body: FacilitatorBody): void {
  const [path] = unstorableTexts(body, 1)
  if (path !== undefined) throw refused('invalid_payload', { message: `/${path.join('/')} ${unstorableText}` })
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

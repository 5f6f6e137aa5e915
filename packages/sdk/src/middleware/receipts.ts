import { decodeMppJson, formatReceipt, offerReceiptKey, parseMppCredential, receiptExtension } from '@purser/protocol'
import type { VerifiedPayment } from '../payments.ts'
import { isRecord } from '../problem.ts'
import type { Credential, MppSent, X402Credential } from './credential.ts'
import { encodeHeader } from './headers.ts'
import type { OwnResponse } from './responses.ts'

/** The settlement state of a sold response. */
export interface Moved {
  readonly txHash: string | null
  readonly settledAt: string | null
  /** Broadcast, outcome unknown. */
  readonly pending: boolean
  /** Purser's signed receipt (x402 extension offer-receipt), a JWS. */
  readonly signed?: string | null | undefined
}

/** The receipt header for the payer, in the protocol of the payment. */
export function receiptOf(credential: Credential, payment: VerifiedPayment, moved: Moved): readonly [string, string] {
  return credential.protocol === 'x402'
    ? [credential.responseHeader, x402Receipt(credential, payment.payer, moved)]
    : ['Payment-Receipt', mppReceipt(credential, payment, moved)]
}

function x402Receipt(credential: X402Credential, payer: string | null, { txHash, pending, signed }: Moved): string {
  const { network, responseHeader } = credential
  const receipt = { success: true, transaction: txHash ?? '', network, ...named(payer) }
  // Version 1 has no extensions.
  const isSigned = typeof signed === 'string' && responseHeader === 'PAYMENT-RESPONSE'
  const extensions = isSigned && { extensions: { [offerReceiptKey]: receiptExtension(signed) } }
  return encodeHeader({ ...receipt, ...(pending && { extra: { settlement: 'pending' } }), ...extensions })
}

/**
 * The challenge echoed in a verified credential is the one that Purser signed. A payment without a transaction, such
 * as a zero-price proof, is referenced by its challenge.
 */
function mppReceipt(credential: MppSent, payment: VerifiedPayment, { txHash, settledAt }: Moved): string {
  const parsed = parseMppCredential(credential.value)
  const echoed = parsed.ok ? parsed.value.challenge : undefined
  const challengeId = payment.challengeId ?? echoed?.id
  const chainId = chainIdOf(payment.network, echoed?.request)
  return formatReceipt({
    status: 'success',
    method: payment.method ?? echoed?.method ?? 'stub',
    timestamp: settledAt ?? new Date().toISOString(),
    reference: txHash ?? challengeId ?? payment.paymentId,
    ...(challengeId !== undefined && { challengeId }),
    ...(chainId !== undefined && { chainId }),
  })
}

function chainIdOf(network: string, request: string | undefined): number | undefined {
  const [, reference] = /^eip155:([1-9]\d{0,14})$/.exec(network) ?? []
  if (reference !== undefined) return Number(reference)
  const details = request === undefined ? undefined : decodeMppJson(request)?.methodDetails
  return isRecord(details) && typeof details.chainId === 'number' ? details.chainId : undefined
}

/** The 402 for a valid x402 payment that could not be settled. Nothing is served and nothing was charged. */
export function unsettledResponse(credential: X402Credential, payer: string | null, reason: string): OwnResponse {
  const { network, responseHeader } = credential
  const failure = { success: false, errorReason: reason, transaction: '', network, ...named(payer) }
  return {
    status: 402,
    headers: {
      'Content-Type': 'application/json',
      'Cache-Control': 'no-store',
      [responseHeader]: encodeHeader(failure),
    },
    body: JSON.stringify({ error: reason }),
  }
}

/** The protocol omits optional members instead of setting them to null. */
function named(payer: string | null): { payer?: string } {
  return payer === null ? {} : { payer }
}

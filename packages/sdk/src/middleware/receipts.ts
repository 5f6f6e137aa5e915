import { decodeMppJson, formatReceipt, offerReceiptKey, parseMppCredential, receiptExtension } from '@purser/protocol'
import type { VerifiedPayment } from '../payments.ts'
import { isRecord } from '../problem.ts'
import type { OwnAnswer } from './answers.ts'
import { mppFactsOf } from './contract.ts'
import type { Credential, MppSent, X402Credential } from './credential.ts'
import { encodeHeader } from './headers.ts'

/** How far the money of a sold answer has come. */
export interface Moved {
  readonly txHash: string | null
  readonly settledAt: string | null
  /** Broadcast, outcome not known yet. */
  readonly pending: boolean
  /** Purser's signed receipt (x402 extension offer-receipt), a JWS. */
  readonly signed?: string | null | undefined
}

/** The header that proves the payment to the payer, in the words of the protocol that he paid with. */
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
 * Purser has verified the credential, so what it echoes of its challenge is what Purser signed. A payment without a
 * transaction, such as the proof for a price of zero, is named by its challenge.
 */
function mppReceipt(credential: MppSent, payment: VerifiedPayment, { txHash, settledAt }: Moved): string {
  const parsed = parseMppCredential(credential.value)
  const echoed = parsed.ok ? parsed.value.challenge : undefined
  const facts = mppFactsOf(payment)
  const challengeId = facts.challengeId ?? echoed?.id
  const chainId = chainIdOf(facts.network, echoed?.request)
  return formatReceipt({
    status: 'success',
    method: facts.method ?? echoed?.method ?? 'stub',
    timestamp: settledAt ?? new Date().toISOString(),
    reference: txHash ?? challengeId ?? payment.paymentId,
    ...(challengeId !== undefined && { challengeId }),
    ...(chainId !== undefined && { chainId }),
  })
}

function chainIdOf(network: string | null, request: string | undefined): number | undefined {
  const [, reference] = /^eip155:([1-9]\d{0,14})$/.exec(network ?? '') ?? []
  if (reference !== undefined) return Number(reference)
  const details = request === undefined ? undefined : decodeMppJson(request)?.methodDetails
  return isRecord(details) && typeof details.chainId === 'number' ? details.chainId : undefined
}

/** The 402 for an x402 payment that was valid and could not be settled: the goods stay, the payer keeps the money. */
export function unsettledAnswer(credential: X402Credential, payer: string | null, reason: string): OwnAnswer {
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

/** Optional members of the protocol are left out, not null. */
function named(payer: string | null): { payer?: string } {
  return payer === null ? {} : { payer }
}

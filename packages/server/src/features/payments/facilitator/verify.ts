import { schemeOf } from '../methods/index.ts'
import type { Claim } from '../methods/method.ts'
import type { Ctx } from '../ports.ts'
import { admit } from './admit.ts'
import { refusalOf, refuseUnstorableText } from './refusal.ts'
import type { FacilitatorBody, VerifyAnswer } from './schema.ts'
import { getKnownPayment } from './store.ts'

/**
 * Verifies a payment for an external x402 server, and records it. `isValid: true` is returned once per signature, so that copies
 * that arrive together buy one thing. A bad payment is a negative answer; a failing node or a limit is a problem.
 * Source: x402 specification v2 section 7.1; docs/decisions/0018.
 */
export async function verify(ctx: Ctx, body: FacilitatorBody): Promise<VerifyAnswer> {
  let claim: Claim | undefined
  try {
    refuseUnstorableText(body)
    const reading = schemeOf(body).read(ctx, body, 'verify')
    claim = reading.claim
    await admit(ctx, body, reading, 'facilitator')
    return { isValid: true, payer: claim.payer }
  } catch (error) {
    const refusal = refusalOf(error, claim)
    if (refusal === undefined) throw error
    return { isValid: false, invalidReason: refusal.reason, invalidMessage: refusal.message, payer: refusal.payer }
  }
}

/**
 * Returns the response to a repeat with the same Idempotency-Key, when the payment was recorded and the first response was never
 * sent.
 */
export async function verifiedBefore(ctx: Ctx, paymentId: string): Promise<VerifyAnswer> {
  const { payer } = await getKnownPayment(ctx.db, ctx.tenant, paymentId)
  return { isValid: true, payer: payer ?? undefined }
}

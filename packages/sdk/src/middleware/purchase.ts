import type { Verification } from '../payments.ts'
import type { Again } from './conclusion.ts'
import type { Credential } from './credential.ts'
import { grantOf } from './grant.ts'
import { unsettledResponse } from './receipts.ts'
import { type PaymentContext, requestPayment } from './request-payment.ts'
import type { OwnResponse } from './responses.ts'
import { conclude, giveBack, type Purchase } from './settle.ts'

/** A verified purchase: a verified payment, or a redemption that allows the handler to run again. */
export interface Verified {
  readonly verification: Verification
  /** The time at which the verification was requested, by `performance.now()`. */
  readonly verifiedAt: number
  /** Keeps the response for a repeat with the same payment identifier. */
  readonly keep?: ((response: OwnResponse) => void) | undefined
  /** Releases the payment identifier of an unsettled purchase. */
  readonly free?: (() => void) | undefined
}

/** The key of a kept response: the credential and its request. */
export function keptKeyOf({ method, resource, digest }: PaymentContext, { value }: Credential): string {
  return JSON.stringify([value, method, resource, digest])
}

/** The members of an admission that a purchase decides, however it was verified. */
export function paidBy({ context, payment, grant }: Purchase) {
  return {
    kind: 'paid',
    payment,
    session: undefined,
    vault: grant.vault,
    bodyBytesMax: context.route.bodyBytesMax,
  } as const
}

/** A verified payment with everything needed to settle it and to serve it on this connection or a later one. */
export function purchaseOf(
  context: PaymentContext,
  credential: Credential,
  { verification, verifiedAt, keep, free }: Verified,
): Purchase {
  const { seller } = context
  const { valid: _, settlementToken, ...payment } = verification
  const purchase: Purchase = {
    context,
    credential,
    payment,
    grant: grantOf(context, payment),
    settlementToken,
    verifiedAt,
    unsettled: async (reason) => {
      free?.()
      seller.abandoned.count(payment.payer)
      if (credential.protocol === 'mpp') return requestPayment(context, { protocol: 'mpp', reason })
      return unsettledResponse(credential, payment.payer, reason)
    },
    keep,
    keepForPayer: (response, redemptionToken) => {
      seller.onUndelivered({ payment, isKept: true })
      const settleAndDecide = (again: Again) => conclude(purchase, again)
      const kept = { response, payment, conclude: settleAndDecide, redemptionToken }
      seller.kept.keep(keptKeyOf(context, credential), kept)
      // Lets another process serve a GET at once.
      if (redemptionToken !== undefined) giveBack(seller, payment, redemptionToken)
    },
  }
  return purchase
}

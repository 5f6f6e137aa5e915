import type { Verification } from '../payments.ts'
import type { OwnAnswer } from './answers.ts'
import { askToPay, type Sale } from './ask.ts'
import type { Credential } from './credential.ts'
import { grantOf } from './grant.ts'
import { unsettledAnswer } from './receipts.ts'
import { type Purchase, takeBack } from './settle.ts'

/** What a payer bought, as Purser verified it, or allowed its handler to run again. */
export interface Verified {
  readonly verification: Verification
  /** When that was requested, by `performance.now()`. */
  readonly verifiedAt: number
  /** Keeps the sold answer for a repeat of a purchase that the payer named. */
  readonly keep?: ((answer: OwnAnswer) => void) | undefined
  /** Frees the name of a purchase that was not settled. */
  readonly free?: (() => void) | undefined
}

/** What names an answer that is kept for a payer: the credential and the request that it came with. */
export function keptKeyOf({ method, resource, digest }: Sale, { value }: Credential): string {
  return JSON.stringify([value, method, resource, digest])
}

/** A verified payment with all that is needed to settle it, and to serve it on this connection or a later one. */
export function purchaseOf(
  sale: Sale,
  credential: Credential,
  { verification, verifiedAt, keep, free }: Verified,
): Purchase {
  const { till } = sale
  const { valid: _, settlementToken, ...payment } = verification
  const purchase: Purchase = {
    sale,
    credential,
    payment,
    grant: grantOf(sale, payment),
    settlementToken,
    verifiedAt,
    unsettled: async (reason) => {
      free?.()
      if (credential.protocol === 'mpp') return askToPay(sale, { protocol: 'mpp', reason })
      return unsettledAnswer(credential, payment.payer, reason)
    },
    keep,
    keepForPayer: (answer, redemptionToken) => {
      till.onUndelivered({ payment, isKept: true })
      till.kept.keep(keptKeyOf(sale, credential), { answer, purchase, redemptionToken })
      // Another process may serve a GET at once; where this fails, the payer's next request repeats it.
      if (redemptionToken !== undefined) takeBack(till, payment.paymentId, redemptionToken).catch(() => undefined)
    },
  }
  return purchase
}

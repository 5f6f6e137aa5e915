import { ConflictError, NotFoundError } from '../errors.ts'
import { type OwnAnswer, problemAnswer } from './answers.ts'
import type { Sale } from './ask.ts'
import type { Admission } from './core.ts'
import type { Credential } from './credential.ts'
import { privateCacheControl } from './headers.ts'
import { keptKeyOf, purchaseOf } from './purchase.ts'
import { receiptOf } from './receipts.ts'
import { type PayerSignature, redeemRequestOf } from './redeem-request.ts'
import { unkept } from './replays.ts'
import { type Conclusion, conclude, isPassing, type Purchase, redemptionRefusal, takeBack } from './settle.ts'

/** An answer in place of the handler's. */
export interface Served {
  readonly answer: OwnAnswer
  /** Call in place of sending it when the payer is gone. */
  readonly undelivered?: (() => void) | undefined
}

/**
 * Serves the answer that is kept for this very credential and request, once the payment is settled and Purser says that
 * nobody else serves it; undefined where none is kept.
 */
export async function serveKept(
  sale: Sale,
  credential: Credential,
  signature: PayerSignature | undefined,
): Promise<Served | undefined> {
  const taken = sale.till.kept.take(keptKeyOf(sale, credential))
  if (taken === undefined) return undefined
  if (taken === 'busy') return { answer: problemAnswer('delivery-in-progress', 1) }
  const { purchase, answer, redemptionToken } = taken
  const conclusion = await conclude(purchase, { signature, redemptionToken })
  if (conclusion.kind === 'withhold') {
    if (conclusion.keep === undefined) taken.drop()
    else taken.putBack(conclusion.redemptionToken)
    return { answer: conclusion.answer }
  }
  taken.drop()
  const sold = soldAnswer(answer, conclusion.headers)
  conclusion.keep?.(sold)
  return { answer: sold, undelivered: () => conclusion.undelivered(answer) }
}

/** A handler's answer as it leaves later, on another connection than the one that it was written for. */
function soldAnswer({ status, headers, body }: OwnAnswer, paid: readonly (readonly [string, string])[]): OwnAnswer {
  const own = Object.entries(headers).filter(([name]) => !unkept.test(name) && name.toLowerCase() !== 'cache-control')
  const cacheControl = Object.entries(headers).find(([name]) => name.toLowerCase() === 'cache-control')?.[1]
  const kept = typeof cacheControl === 'string' ? cacheControl : cacheControl?.join(', ')
  return {
    status,
    headers: { ...Object.fromEntries(own), ...Object.fromEntries(paid), 'Cache-Control': privateCacheControl(kept) },
    body,
  }
}

/**
 * What becomes of a credential that was used before and whose answer is not kept here: the handler runs again where the
 * payment was settled and never delivered, and the payer proves who they are. Purser allows that for GET and HEAD, twice.
 * While the first handler may still run, the payer has to wait and never to pay again.
 */
export async function admitAgain(
  sale: Sale,
  credential: Credential,
  signature: PayerSignature | undefined,
): Promise<Admission> {
  const verifiedAt = performance.now()
  try {
    const redemption = await sale.till.purser.payments.redeem(redeemRequestOf(sale, credential, signature))
    const { redemptionToken, expiresIn: _seconds, ...verification } = redemption
    return rerun(purchaseOf(sale, credential, { verification, verifiedAt }), redemptionToken)
  } catch (error) {
    if (error instanceof ConflictError) return refuse(redemptionRefusal(error))
    // An older Purser knows no redemption.
    if (error instanceof NotFoundError) return refuse(problemAnswer('duplicate-payment'))
    sale.till.onFault({ stage: 'delivery', error })
    return refuse(problemAnswer('delivery-unavailable', 5))
  }
}

function rerun(purchase: Purchase, redemptionToken: string): Admission {
  const { sale, payment, grant } = purchase
  const { till, route } = sale
  const giveBack = () => void takeBack(till, payment.paymentId, redemptionToken).catch(() => undefined)
  const unserved = (error: Error) => {
    giveBack()
    till.onFault({ stage: 'handler', error, payment })
  }
  return {
    kind: 'paid',
    payment,
    session: undefined,
    vault: grant.vault,
    bodyBytesMax: route.bodyBytesMax,
    conclude: () => finish(purchase, redemptionToken),
    tooLarge: () => {
      unserved(new RangeError('The answer exceeds bodyBytesMax.'))
      return problemAnswer('response-too-large')
    },
    failed: () => unserved(new Error('The handler failed when a settled payment was redeemed.')),
    abandon: () => {
      giveBack()
      return true
    },
  }
}

async function finish(purchase: Purchase, redemptionToken: string): Promise<Conclusion> {
  const { sale, credential, payment, grant, keepForPayer } = purchase
  const { paymentId, txHash, settledAt } = payment
  const session = await grant.sessionHeaders()
  try {
    await sale.till.purser.payments.redeemed(paymentId, { redemptionToken })
  } catch (error) {
    if (error instanceof ConflictError)
      return { kind: 'withhold', answer: redemptionRefusal(error), keep: isPassing(error) ? keepForPayer : undefined }
    sale.till.onFault({ stage: 'delivery', error, payment })
    const keep = (answer: OwnAnswer) => keepForPayer(answer, redemptionToken)
    return { kind: 'withhold', answer: problemAnswer('delivery-unavailable', 5), keep }
  }
  const headers = [receiptOf(credential, payment, { txHash, settledAt, pending: false }), ...session]
  const undelivered = (answer: OwnAnswer) => keepForPayer(answer, redemptionToken)
  return { kind: 'release', headers, keep: undefined, delivered: () => {}, undelivered }
}

function refuse(answer: OwnAnswer): Admission {
  return { kind: 'refused', answer }
}

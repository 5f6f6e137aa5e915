import { ConflictError, NotFoundError } from '../errors.ts'
import type { Redemption } from '../payments.ts'
import { type OwnAnswer, problemAnswer } from './answers.ts'
import type { Sale } from './ask.ts'
import type { Admission } from './core.ts'
import type { Credential } from './credential.ts'
import { grantOf } from './grant.ts'
import { privateCacheControl } from './headers.ts'
import { receiptOf } from './receipts.ts'
import { mayRedeem, type PayerSignature, redeemRequestOf } from './redeem-request.ts'
import { unkept } from './replays.ts'
import { type Conclusion, conclude } from './settle.ts'

/** What names an answer that is kept for a payer: the credential and the request that it came with. */
export function keptKeyOf({ method, resource, digest }: Sale, { value }: Credential): string {
  return JSON.stringify([value, method, resource, digest])
}

/**
 * Serves the answer that is kept for this very credential and request, once the payment is settled and Purser says that
 * nobody else serves it; undefined where none is kept.
 */
export async function serveKept(
  sale: Sale,
  credential: Credential,
  signature: PayerSignature | undefined,
): Promise<OwnAnswer | undefined> {
  const taken = sale.till.kept.take(keptKeyOf(sale, credential))
  if (taken === undefined) return undefined
  if (taken === 'busy') return problemAnswer('delivery-in-progress', 1)
  const { purchase, answer } = taken
  if (!purchase.payment.redeemable && signature === undefined) {
    taken.putBack()
    return problemAnswer('duplicate-payment')
  }
  const { withSession } = grantOf(sale, purchase.payment)
  const conclusion = await withSession(await conclude(purchase, { signature }))
  if (conclusion.kind === 'withhold') {
    if (conclusion.keep === undefined) taken.drop()
    else taken.putBack()
    return conclusion.answer
  }
  taken.drop()
  const sold = soldAnswer(answer, conclusion.headers)
  conclusion.keep?.(sold)
  return sold
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
 * payment was settled and never delivered, and the payer proves himself. Purser allows that for GET and HEAD, twice.
 */
export async function admitAgain(
  sale: Sale,
  credential: Credential,
  signature: PayerSignature | undefined,
): Promise<Admission> {
  if (!mayRedeem(credential, signature)) return refuse(problemAnswer('duplicate-payment'))
  try {
    return rerun(sale, credential, await sale.till.purser.payments.redeem(redeemRequestOf(sale, credential, signature)))
  } catch (error) {
    if (error instanceof ConflictError && error.code === 'delivery-in-progress')
      return refuse(problemAnswer('delivery-in-progress', error.retryAfterSeconds ?? 5))
    // An older Purser knows no redemption.
    if (error instanceof ConflictError || error instanceof NotFoundError)
      return refuse(problemAnswer('duplicate-payment'))
    sale.till.onFault({ stage: 'delivery', error })
    return refuse(problemAnswer('delivery-unavailable', 5))
  }
}

function rerun(sale: Sale, credential: Credential, redemption: Redemption): Admission {
  const { valid: _, settlementToken: _token, redemptionToken, expiresIn: _seconds, ...payment } = redemption
  const { till, route } = sale
  const { vault, withSession } = grantOf(sale, payment)
  const unserved = (error: Error) => till.onFault({ stage: 'handler', error, payment })
  return {
    kind: 'paid',
    payment,
    session: undefined,
    vault,
    bodyBytesMax: route.bodyBytesMax,
    conclude: async () => withSession(await finish(sale, credential, payment, redemptionToken)),
    tooLarge: () => {
      unserved(new RangeError('The answer exceeds bodyBytesMax.'))
      return problemAnswer('response-too-large')
    },
    failed: () => unserved(new Error('The handler failed when a settled payment was redeemed.')),
    abandon: () => true,
  }
}

async function finish(
  { till }: Sale,
  credential: Credential,
  payment: Omit<Redemption, 'valid' | 'settlementToken' | 'redemptionToken' | 'expiresIn'>,
  redemptionToken: string,
): Promise<Conclusion> {
  const { paymentId, txHash, settledAt } = payment
  try {
    await till.purser.payments.redeemed(paymentId, { redemptionToken })
  } catch (error) {
    if (error instanceof ConflictError)
      return { kind: 'withhold', answer: problemAnswer('duplicate-payment'), keep: undefined }
    till.onFault({ stage: 'delivery', error, payment })
    return { kind: 'withhold', answer: problemAnswer('delivery-unavailable', 5), keep: undefined }
  }
  const headers = [receiptOf(credential, payment, { txHash, settledAt, pending: false })]
  return { kind: 'release', headers, keep: undefined, delivered: () => {}, undelivered: () => {} }
}

function refuse(answer: OwnAnswer): Admission {
  return { kind: 'refused', answer }
}

import { parseUsd } from '@purser/protocol'
import { ConflictError } from '../errors.ts'
import type { Admission, Served } from './admission.ts'
import type { Conclusion } from './conclusion.ts'
import type { Credential } from './credential.ts'
import { isTargetedCaching, privateCacheControl } from './headers.ts'
import type { PayerSignature } from './payer-signature.ts'
import { keptKeyOf, paidBy, purchaseOf } from './purchase.ts'
import { receiptOf } from './receipts.ts'
import { redeemRequestOf } from './redeem-request.ts'
import { unkept } from './replays.ts'
import type { PaymentContext } from './request-payment.ts'
import { type OwnResponse, problemResponse } from './responses.ts'
import { giveBack, isPassing, type Purchase, redemptionRefusal } from './settle.ts'

/**
 * Serves the response that is kept for this credential and request, after the payment is settled and Purser has
 * confirmed that nobody else serves it. Undefined if none is kept.
 */
export async function serveKept(
  context: PaymentContext,
  credential: Credential,
  signature: PayerSignature | undefined,
): Promise<Served | undefined> {
  const taken = context.seller.kept.take(keptKeyOf(context, credential))
  if (taken === undefined) return undefined
  if (taken === 'busy') return { response: problemResponse('delivery-in-progress', 1) }
  const { response, redemptionToken } = taken
  const conclusion = await taken.conclude({ signature, redemptionToken })
  if (conclusion.kind === 'withhold') {
    if (conclusion.keep === undefined) taken.drop()
    else taken.putBack(conclusion.redemptionToken)
    return { response: conclusion.response }
  }
  taken.drop()
  const sold = soldResponse(response, conclusion.headers)
  conclusion.keep?.(sold)
  return { response: sold, undelivered: () => conclusion.undelivered(response) }
}

/** A handler's response, adapted to be sent later on another connection. */
function soldResponse(
  { status, headers, body }: OwnResponse,
  paid: readonly (readonly [string, string])[],
): OwnResponse {
  const isOwn = (name: string) =>
    !unkept.test(name) && name.toLowerCase() !== 'cache-control' && !isTargetedCaching(name)
  const own = Object.entries(headers).filter(([name]) => isOwn(name))
  const cacheControl = Object.entries(headers).find(([name]) => name.toLowerCase() === 'cache-control')?.[1]
  const kept = typeof cacheControl === 'string' ? cacheControl : cacheControl?.join(', ')
  return {
    status,
    headers: { ...Object.fromEntries(own), ...Object.fromEntries(paid), 'Cache-Control': privateCacheControl(kept) },
    body,
  }
}

/**
 * Decides about a used credential whose response is not kept here. The handler runs again if the payment was settled
 * but never delivered and the payer proves control of the account. Purser allows that twice, for GET and HEAD. While
 * the first handler may still be running, the payer must wait and must not pay again.
 */
export async function admitAgain(
  context: PaymentContext,
  credential: Credential,
  signature: PayerSignature | undefined,
): Promise<Admission> {
  const verifiedAt = performance.now()
  try {
    const redemption = await context.seller.purser.payments.redeem(redeemRequestOf(context, credential, signature))
    const { redemptionToken, expiresIn: _seconds, ...verification } = redemption
    const purchase = purchaseOf(context, credential, { verification, verifiedAt })
    return isUnderpaid(purchase) ? refuseUnderpaid(purchase, redemptionToken) : rerun(purchase, redemptionToken)
  } catch (error) {
    if (error instanceof ConflictError) return refuse(redemptionRefusal(error))
    context.seller.onFault({ stage: 'delivery', error })
    return refuse(problemResponse('delivery-unavailable', 5))
  }
}

/** Whether the request costs more than was paid: its price may depend on more than the URL and the method. */
function isUnderpaid({ context, payment }: Purchase): boolean {
  const [price, paid] = [parseUsd(context.price), parseUsd(payment.amount)]
  return price === undefined || paid === undefined || price > paid
}

function refuseUnderpaid({ context, payment }: Purchase, redemptionToken: string): Admission {
  const { seller, price } = context
  giveBack(seller, payment, redemptionToken)
  const error = new Error(`The payment of ${payment.amount} does not buy this request again, which costs ${price}.`)
  seller.onFault({ stage: 'delivery', error, payment })
  return refuse(problemResponse('answer-lost'))
}

function rerun(purchase: Purchase, redemptionToken: string): Admission {
  const { context, payment } = purchase
  const { seller } = context
  const release = () => giveBack(seller, payment, redemptionToken)
  const unserved = (error: Error) => {
    release()
    seller.onFault({ stage: 'handler', error, payment })
  }
  return {
    ...paidBy(purchase),
    conclude: () => finish(purchase, redemptionToken),
    tooLarge: () => {
      unserved(new RangeError('The response exceeds bodyBytesMax.'))
      return problemResponse('response-too-large')
    },
    failed: () => unserved(new Error('The handler failed when a settled payment was redeemed.')),
    unended: release,
    abandon: () => {
      release()
      return true
    },
  }
}

async function finish(purchase: Purchase, redemptionToken: string): Promise<Conclusion> {
  const { context, credential, payment, grant, keepForPayer } = purchase
  const { paymentId, txHash, settledAt } = payment
  const session = await grant.sessionHeaders()
  try {
    await context.seller.purser.payments.redeemed(paymentId, { redemptionToken })
  } catch (error) {
    if (error instanceof ConflictError)
      return { kind: 'withhold', response: redemptionRefusal(error), keep: isPassing(error) ? keepForPayer : undefined }
    context.seller.onFault({ stage: 'delivery', error, payment })
    const keep = (response: OwnResponse) => keepForPayer(response, redemptionToken)
    return { kind: 'withhold', response: problemResponse('delivery-unavailable', 5), keep }
  }
  const headers = [receiptOf(credential, payment, { txHash, settledAt, pending: false }), ...session]
  const undelivered = (response: OwnResponse) => keepForPayer(response, redemptionToken)
  return { kind: 'release', headers, keep: undefined, delivered: () => {}, undelivered }
}

function refuse(response: OwnResponse): Admission {
  return { kind: 'refused', response }
}

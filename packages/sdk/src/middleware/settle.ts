import { ConflictError, PurserError } from '../errors.ts'
import type { Settlement, VerifiedPayment } from '../payments.ts'
import { pause } from '../transport.ts'
import type { Again, Conclusion, Release, Withhold } from './conclusion.ts'
import type { Credential } from './credential.ts'
import type { Grant } from './grant.ts'
import { type Moved, receiptOf } from './receipts.ts'
import { redeemRequestOf } from './redeem-request.ts'
import type { PaymentContext } from './request-payment.ts'
import { type OwnResponse, problemResponse } from './responses.ts'
import type { Route, Seller } from './seller.ts'

/**
 * The delay between two settle requests. Purser itself waits for the outcome, so this only prevents a tight loop if it
 * responds quickly.
 */
const retryMs = 500
/**
 * A response may be sent without a redemption for this long after Purser confirmed that there is none. Purser's grace
 * period is 30 s.
 */
const releaseMsMax = 20_000

export interface Purchase {
  readonly context: PaymentContext
  readonly credential: Credential
  readonly payment: VerifiedPayment
  /** The vault and session that the payment buys in addition to the response. */
  readonly grant: Grant
  readonly settlementToken: string
  /** The time just before verification, by `performance.now()`. */
  readonly verifiedAt: number
  /** The response for a payment that is known not to be settled. */
  readonly unsettled: (reason: string) => Promise<OwnResponse>
  readonly keep: ((response: OwnResponse) => void) | undefined
  /**
   * Keeps the handler's response for a later request with the same credential. `redemptionToken` belongs to a
   * redemption that may be finished.
   */
  readonly keepForPayer: (response: OwnResponse, redemptionToken?: string) => void
}

interface Served extends Moved {
  readonly session: Release['headers']
}

interface Known extends Moved {
  /** Until this time the response may be sent without a redemption. */
  readonly isOwnUntil: number
}

/**
 * Settles a payment whose handler succeeded. The response is released if the money moved, or if the transaction is in
 * a block and `onPending` is `release`. It is withheld if settlement failed or its outcome is unknown; in the latter
 * case the response does not claim that nothing was charged, and the handler's response is kept for the payer.
 */
export async function conclude(purchase: Purchase, again?: Again): Promise<Conclusion> {
  const { context, payment, settlementToken, keepForPayer } = purchase
  const { seller, route } = context
  const settleAgain = () => seller.purser.payments.settle({ paymentId: payment.paymentId, settlementToken })
  let known: Known
  try {
    known = payment.settlementPending ? await settled(settleAgain, route) : knownAtVerify(purchase)
  } catch (error) {
    if (isFinal(error)) return withhold(await purchase.unsettled(reasonOf(error, purchase.credential)))
    seller.onFault({ stage: 'settle', error, payment, settleAgain })
    return withhold(problemResponse('settlement-unavailable', 5), keepForPayer)
  }
  if (again !== undefined && !payment.redeemable && again.signature === undefined)
    return withhold(problemResponse('answer-lost'), keepForPayer)
  // The time to send without a redemption is short, so the session is opened first.
  const session = await purchase.grant.sessionHeaders()
  const isOwn = again === undefined && performance.now() < known.isOwnUntil
  return isOwn ? release(purchase, { ...known, session }) : redeemed(purchase, { ...known, session }, again)
}

function knownAtVerify({ payment, verifiedAt }: Purchase): Known {
  return { txHash: payment.txHash, settledAt: payment.settledAt, pending: false, isOwnUntil: verifiedAt + releaseMsMax }
}

async function settled(settle: () => Promise<Settlement>, route: Route): Promise<Known> {
  const deadline = Date.now() + route.holdMsMax
  while (true) {
    const settlement = await settle()
    const answeredAt = performance.now()
    const { txHash } = settlement
    if (settlement.status === 'settled') {
      const { settledAt, receipt: signed, redemptionRequested } = settlement
      const isOwnUntil = redemptionRequested ? 0 : answeredAt + releaseMsMax
      return { txHash, settledAt, signed, pending: false, isOwnUntil }
    }
    if (route.onPending === 'release' && txHash !== null)
      return { txHash, settledAt: null, pending: true, isOwnUntil: answeredAt + releaseMsMax }
    if (Date.now() >= deadline) {
      throw new PurserError('The settlement is still pending.', { code: 'settlement-pending' })
    }
    await pause(retryMs)
  }
}

/**
 * Releases the response with a redemption. Of several processes and requests that redeem a payment, exactly one
 * succeeds. Only a later connection must prove control of the account, not the first.
 */
async function redeemed(purchase: Purchase, known: Served, again: Again | undefined): Promise<Conclusion> {
  const { context, credential, payment, settlementToken, keepForPayer } = purchase
  const { payments } = context.seller.purser
  let redemptionToken = again?.redemptionToken
  try {
    if (redemptionToken !== undefined) await releaseRedemption(context.seller, payment.paymentId, redemptionToken)
    const request = redeemRequestOf(context, credential, again?.signature)
    const first = again === undefined && { paymentId: payment.paymentId }
    ;({ redemptionToken } = await payments.redeem({ ...request, ...first, rerun: false, settlementToken }))
    await payments.redeemed(payment.paymentId, { redemptionToken })
    return release(purchase, known, redemptionToken)
  } catch (error) {
    if (error instanceof ConflictError)
      return withhold(redemptionRefusal(error), isPassing(error) ? keepForPayer : undefined)
    context.seller.onFault({ stage: 'delivery', error, payment })
    const keep = (response: OwnResponse) => keepForPayer(response, redemptionToken)
    return { ...withhold(problemResponse('settlement-unavailable', 5), keep), redemptionToken }
  }
}

/** The response to a payer whose payment may not be served now, from Purser's refusal. */
export function redemptionRefusal(error: ConflictError): OwnResponse {
  if (isPassing(error)) return problemResponse('delivery-in-progress', error.retryAfterSeconds ?? 5)
  return problemResponse(error.code === 'answer-lost' ? 'answer-lost' : 'duplicate-payment')
}

/** Whether the payment may still be served later: another request has the redemption and may fail. */
export function isPassing({ code }: ConflictError): boolean {
  return code === 'delivery-in-progress' || code === 'redemption-lost'
}

/**
 * Returns the redemption of a payment whose response was not sent. It is not an error if another request has it by
 * now.
 */
async function releaseRedemption({ purser }: Seller, paymentId: string, redemptionToken: string): Promise<void> {
  try {
    await purser.payments.undelivered(paymentId, { redemptionToken })
  } catch (error) {
    if (!(error instanceof ConflictError)) throw error
  }
}

/**
 * Returns a redemption without waiting. If this fails, the redemption ends by itself and the payer's next request
 * redeems again.
 */
export function giveBack(seller: Seller, payment: Purchase['payment'], redemptionToken: string): void {
  releaseRedemption(seller, payment.paymentId, redemptionToken).catch((error: unknown) =>
    seller.onFault({ stage: 'delivery', error, payment }),
  )
}

function isFinal(error: unknown): error is ConflictError {
  return error instanceof ConflictError && (error.code === 'settlement-failed' || error.code === 'payment-voided')
}

/** Reason codes have underscores in x402, hyphens in MPP. */
function reasonOf({ problem, code }: ConflictError, { protocol }: Credential): string {
  return problem?.reason ?? (protocol === 'x402' ? code.replaceAll('-', '_') : code)
}

function release(
  { context, credential, payment, keep, keepForPayer }: Purchase,
  served: Served,
  redemptionToken?: string,
): Release {
  return {
    kind: 'release',
    headers: [receiptOf(credential, payment, served), ...served.session],
    keep,
    delivered: () => {
      if (redemptionToken === undefined) context.seller.reportDelivered(payment.paymentId)
    },
    undelivered: (response) => keepForPayer(response, redemptionToken),
  }
}

function withhold(response: OwnResponse, keep?: (response: OwnResponse) => void): Withhold {
  return { kind: 'withhold', response, keep }
}

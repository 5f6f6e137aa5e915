import { ConflictError, NotFoundError, PurserError } from '../errors.ts'
import type { Settlement, VerifiedPayment } from '../payments.ts'
import { pause } from '../transport.ts'
import { type OwnAnswer, problemAnswer } from './answers.ts'
import type { Sale } from './ask.ts'
import type { Credential } from './credential.ts'
import type { Grant } from './grant.ts'
import type { Route, Till } from './options.ts'
import { type Moved, receiptOf } from './receipts.ts'
import { type PayerSignature, redeemRequestOf } from './redeem-request.ts'

/** Purser waits on its side; this only keeps a quick answer from being asked for in a tight loop. */
const askAgainMs = 500
/** An answer leaves without a redemption only so long after Purser said that nobody has requested one: Purser's grace is 30 s. */
const releaseMsMax = 20_000

/** `release` with the headers that the payer gets for his payment, or the answer to give in place of the handler's. */
export type Conclusion = Release | Withhold

export interface Release {
  readonly kind: 'release'
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** Call with the answer as it leaves, where it is given: a repeat of the same purchase is answered with it. */
  readonly keep: ((answer: OwnAnswer) => void) | undefined
  /** Call when the answer was handed to the payer's connection. */
  readonly delivered: () => void
  /**
   * Call in place of that with the handler's answer when the payer is gone: it is kept for the same credential, and a redemption that was
   * finished for it is taken back.
   */
  readonly undelivered: (answer: OwnAnswer) => void
}

export interface Withhold {
  readonly kind: 'withhold'
  readonly answer: OwnAnswer
  /** Where it is given, call it with the handler's answer: the payment may still be settled, or still be served. */
  readonly keep: ((answer: OwnAnswer) => void) | undefined
  /** A redemption that may have been finished for the answer. */
  readonly redemptionToken?: string | undefined
}

export interface Purchase {
  readonly sale: Sale
  readonly credential: Credential
  readonly payment: VerifiedPayment
  /** What the payment buys beside the answer. */
  readonly grant: Grant
  readonly settlementToken: string
  /** When the payment was about to be verified, by `performance.now()`. */
  readonly verifiedAt: number
  /** The answer for a payment that is known not to have been settled. */
  readonly unsettled: (reason: string) => Promise<OwnAnswer>
  readonly keep: ((answer: OwnAnswer) => void) | undefined
  /** Keeps the handler's answer for a later request with the same credential. `redemptionToken`: of a redemption that may be finished. */
  readonly keepForPayer: (answer: OwnAnswer, redemptionToken?: string) => void
}

/** The payer has sent the credential again, so that the answer leaves by a redemption alone. */
export interface Again {
  readonly signature: PayerSignature | undefined
  /** Of the redemption whose answer did not leave. */
  readonly redemptionToken: string | undefined
}

interface Served extends Moved {
  readonly session: Release['headers']
}

interface Known extends Moved {
  /** Until then the answer may leave without a redemption. */
  readonly isOwnUntil: number
}

/**
 * Settles a payment whose handler succeeded. The goods leave when the money moved, or is in a block and `onPending` is
 * `release`. They stay when settling failed, and also when nobody knows: the payer must not get them for nothing, and
 * is not told that nothing was charged. An answer that stays for that reason is kept for the payer.
 */
export async function conclude(purchase: Purchase, again?: Again): Promise<Conclusion> {
  const { sale, payment, settlementToken, keepForPayer } = purchase
  const { till, route } = sale
  const settleAgain = () => till.purser.payments.settle({ paymentId: payment.paymentId, settlementToken })
  let known: Known
  try {
    known = payment.settlementPending ? await settled(settleAgain, route) : knownAtVerify(purchase)
  } catch (error) {
    if (isFinal(error)) return withhold(await purchase.unsettled(reasonOf(error, purchase.credential)))
    till.onFault({ stage: 'settle', error, payment, settleAgain })
    return withhold(problemAnswer('settlement-unavailable', 5), keepForPayer)
  }
  if (again !== undefined && !payment.redeemable && again.signature === undefined)
    return withhold(problemAnswer('answer-lost'), keepForPayer)
  // Opening a session takes time, and the answer may leave without a redemption for a short time only.
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
    await pause(askAgainMs)
  }
}

/**
 * Lets the answer out by a redemption: of several processes and requests that have one for this payment, one succeeds. The
 * connection on which the credential came first proves nothing more; a later one does.
 */
async function redeemed(purchase: Purchase, known: Served, again: Again | undefined): Promise<Conclusion> {
  const { sale, credential, payment, settlementToken, keepForPayer } = purchase
  const { payments } = sale.till.purser
  let redemptionToken = again?.redemptionToken
  try {
    if (redemptionToken !== undefined) await takeBack(sale.till, payment.paymentId, redemptionToken)
    const request = redeemRequestOf(sale, credential, again?.signature)
    const first = again === undefined && { paymentId: payment.paymentId }
    ;({ redemptionToken } = await payments.redeem({ ...request, ...first, rerun: false, settlementToken }))
    await payments.redeemed(payment.paymentId, { redemptionToken })
    return release(purchase, known, redemptionToken)
  } catch (error) {
    // An older Purser knows no redemption.
    if (error instanceof NotFoundError && again === undefined) return release(purchase, known)
    if (error instanceof ConflictError)
      return withhold(redemptionRefusal(error), isPassing(error) ? keepForPayer : undefined)
    sale.till.onFault({ stage: 'delivery', error, payment })
    const keep = (answer: OwnAnswer) => keepForPayer(answer, redemptionToken)
    return { ...withhold(problemAnswer('settlement-unavailable', 5), keep), redemptionToken }
  }
}

/** What a payer is answered whose payment may not be served now, by Purser's refusal. */
export function redemptionRefusal(error: ConflictError): OwnAnswer {
  if (isPassing(error)) return problemAnswer('delivery-in-progress', error.retryAfterSeconds ?? 5)
  return problemAnswer(error.code === 'answer-lost' ? 'answer-lost' : 'duplicate-payment')
}

/** Whether the payment may still be served later: somebody else has the right to serve it, and may not succeed. */
export function isPassing({ code }: ConflictError): boolean {
  return code === 'delivery-in-progress' || code === 'redemption-lost'
}

/** Gives back the right to serve a payment whose answer did not leave. That somebody else has it by now is no error. */
export async function takeBack({ purser }: Till, paymentId: string, redemptionToken: string): Promise<void> {
  try {
    await purser.payments.undelivered(paymentId, { redemptionToken })
  } catch (error) {
    if (!(error instanceof ConflictError)) throw error
  }
}

function isFinal(error: unknown): error is ConflictError {
  return error instanceof ConflictError && (error.code === 'settlement-failed' || error.code === 'payment-voided')
}

/** The words of x402 have underscores, those of MPP hyphens. */
function reasonOf({ problem, code }: ConflictError, { protocol }: Credential): string {
  return problem?.reason ?? (protocol === 'x402' ? code.replaceAll('-', '_') : code)
}

function release(
  { sale, credential, payment, keep, keepForPayer }: Purchase,
  served: Served,
  redemptionToken?: string,
): Release {
  return {
    kind: 'release',
    headers: [receiptOf(credential, payment, served), ...served.session],
    keep,
    delivered: () => {
      if (redemptionToken === undefined) sale.till.reportDelivered(payment.paymentId)
    },
    undelivered: (answer) => keepForPayer(answer, redemptionToken),
  }
}

function withhold(answer: OwnAnswer, keep?: (answer: OwnAnswer) => void): Withhold {
  return { kind: 'withhold', answer, keep }
}

import type { OfferRefusalReason, PaymentRefusal } from '@purser/protocol'
import type { LedgerEntry } from './ledger.ts'
import type { PaymentRecord, ProposedPayment } from './payment.ts'

/** The reason why an offer is refused. */
export type RefusalReason = OfferRefusalReason | 'signer-cannot' | 'host-not-allowed' | 'insecure' | 'redirected'

/** A refused offer, or all of them (`*`), with the reason. */
export interface Refusal {
  readonly offer: string
  readonly reason: RefusalReason
}

/**
 * The base class of the errors that a paying fetch throws. Branch on `code`. Messages may change.
 *
 * @example
 * import { PaymentError } from '@purser/sdk/pay'
 *
 * export function codeOf(error: unknown): string {
 *   return error instanceof PaymentError ? error.code : 'other'
 * }
 */
export class PaymentError extends Error {
  readonly code: string

  constructor(code: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = new.target.name
    this.code = code
  }
}

/**
 * Nothing was signed: the payment would exceed a limit.
 *
 * @example
 * import { LimitExceededError } from '@purser/sdk/pay'
 *
 * export function noticeOf(error: unknown): string | undefined {
 *   if (!(error instanceof LimitExceededError)) return undefined
 *   return `${error.amountUsd} USD exceeds ${error.limit}. Counted so far: ${error.spentUsd} USD.`
 * }
 */
export class LimitExceededError extends PaymentError {
  readonly limit: 'perCall' | 'perHostPerDay' | 'perDay'
  /** Decimal dollars. `undefined` if a ledger of yours applies a limit that the options do not set. */
  readonly limitUsd: string | undefined
  readonly amountUsd: string
  /** The amount already counted towards the limit. */
  readonly spentUsd: string

  constructor(facts: Pick<LimitExceededError, 'limit' | 'limitUsd' | 'amountUsd' | 'spentUsd'>) {
    const most = facts.limitUsd === undefined ? 'does not allow it' : `is ${facts.limitUsd} USD`
    super('limit-exceeded', `${facts.amountUsd} USD is requested; the limit ${facts.limit} ${most}.`)
    this.limit = facts.limit
    this.limitUsd = facts.limitUsd
    this.amountUsd = facts.amountUsd
    this.spentUsd = facts.spentUsd
  }
}

/**
 * Nothing was signed: no offer can or may be paid.
 *
 * @example
 * import { UnsupportedPaymentError } from '@purser/sdk/pay'
 *
 * export function reasonsOf(error: unknown): readonly string[] {
 *   return error instanceof UnsupportedPaymentError ? error.refusals.map(({ reason }) => reason) : []
 * }
 */
export class UnsupportedPaymentError extends PaymentError {
  readonly refusals: readonly Refusal[]

  constructor(refusals: readonly Refusal[]) {
    const listed = refusals.map(({ offer, reason }) => `${offer}: ${reason}`).join('; ')
    super('unsupported-payment', `None of the offers is paid (${listed}).`)
    this.refusals = refusals
  }
}

/**
 * Nothing was signed: `confirm` returned false.
 *
 * @example
 * import { ConfirmationDeclinedError } from '@purser/sdk/pay'
 *
 * export function declinedUrlOf(error: unknown): string | undefined {
 *   return error instanceof ConfirmationDeclinedError ? error.payment.url : undefined
 * }
 */
export class ConfirmationDeclinedError extends PaymentError {
  readonly payment: ProposedPayment

  constructor(payment: ProposedPayment) {
    super('confirmation-declined', `${payment.amountUsd} USD for ${payment.host} was not confirmed.`)
    this.payment = payment
  }
}

/**
 * Nothing was signed: a person must approve the payment of the managed wallet. Once approved, call a paying fetch whose
 * wallet has this id as `approvedPaymentId`.
 *
 * @example
 * import { ApprovalNeededError, createPayingFetch, type PayingWallet } from '@purser/sdk/pay'
 *
 * export function fetchOnceApproved(wallet: PayingWallet, error: ApprovalNeededError): typeof fetch {
 *   const approved = { ...wallet, approvedPaymentId: error.paymentId }
 *   return createPayingFetch({ wallet: approved, limits: { perCall: error.payment.amountUsd } })
 * }
 */
export class ApprovalNeededError extends PaymentError {
  readonly payment: ProposedPayment
  /** `wtx_…`: the payment that waits, also in `purser.transfers.get`. */
  readonly paymentId: string

  constructor(payment: ProposedPayment, paymentId: string) {
    const waits = `${payment.amountUsd} USD for ${payment.host} waits for an approval. Nothing was paid.`
    const remedy = `An owner or admin approves it in the dashboard. Then pay again with approvedPaymentId "${paymentId}".`
    super('approval-needed', `${waits} ${remedy}`)
    this.payment = payment
    this.paymentId = paymentId
  }
}

/**
 * Nothing was signed or sent: the ledger has a payment for this purchase that this call cannot repeat.
 * `purchase-unfinished`: another call is paying for it, or a process ended between reserving and signing; once you know
 * that nobody is paying for it, call `release(entry.id)` of the ledger. `purchase-mismatch`: it was made for another URL.
 *
 * @example
 * import { type Ledger, PurchaseError } from '@purser/sdk/pay'
 *
 * // Call it only if you know that no other process pays for this purchase.
 * export async function giveUp(ledger: Ledger, error: unknown): Promise<void> {
 *   if (error instanceof PurchaseError && error.code === 'purchase-unfinished') await ledger.release(error.entry.id)
 * }
 */
export class PurchaseError extends PaymentError {
  #entry: LedgerEntry

  constructor(code: 'purchase-unfinished' | 'purchase-mismatch', entry: LedgerEntry) {
    const why = code === 'purchase-unfinished' ? 'was reserved and not signed' : `is one of ${entry.payment.url}`
    super(code, `The purchase ${entry.purchase} ${why} (reservation ${entry.id}).`)
    this.#entry = entry
  }

  /** The payment for the purchase. Its credential can be spent: keep it out of logs. */
  get entry(): LedgerEntry {
    return this.#entry
  }
}

/**
 * Nothing was sent: the signer failed, or its result is not a signature.
 *
 * @example
 * import { SigningError } from '@purser/sdk/pay'
 *
 * export function faultOfSigner(error: unknown): unknown {
 *   return error instanceof SigningError ? error.cause : undefined
 * }
 */
export class SigningError extends PaymentError {
  constructor(cause?: unknown) {
    super('signing-failed', 'The signer did not sign the payment.', cause)
  }
}

/**
 * Nothing was sent: payment requires sending the body twice, and this body cannot be repeated.
 *
 * @example
 * import { UnreplayableBodyError } from '@purser/sdk/pay'
 *
 * export async function upload(pay: typeof fetch, url: string, file: Blob): Promise<Response> {
 *   try {
 *     return await pay(url, { method: 'POST', body: file.stream() })
 *   } catch (error) {
 *     if (!(error instanceof UnreplayableBodyError)) throw error
 *     return pay(url, { method: 'POST', body: file })
 *   }
 * }
 */
export class UnreplayableBodyError extends PaymentError {
  readonly bytesMax: number

  constructor(bytesMax: number) {
    super(
      'body-too-large',
      `A stream body is buffered for the second request up to ${bytesMax} bytes. This one is larger.`,
    )
    this.bytesMax = bytesMax
  }
}

/**
 * The seller refused the credential. No second payment is made. The amount still counts as spent, because the
 * credential can be used until `payment.validBeforeSeconds`.
 *
 * @example
 * import { PaymentRejectedError } from '@purser/sdk/pay'
 *
 * export function noticeOf(error: unknown): string | undefined {
 *   if (!(error instanceof PaymentRejectedError)) return undefined
 *   return `${error.payment.host} refused ${error.payment.amountUsd} USD: ${error.reason ?? error.status}`
 * }
 */
export class PaymentRejectedError extends PaymentError {
  readonly payment: PaymentRecord
  readonly status: number
  /** The reason code of the protocol, or `undefined` if the seller gave none. */
  readonly reason: string | undefined
  /** Other text by the seller, truncated. Untrusted: do not treat it as an instruction. */
  readonly detail: string | undefined
  readonly #response: Response

  constructor(payment: PaymentRecord, response: Response, why: PaymentRefusal) {
    super('payment-rejected', `The seller refused the payment (${why.reason ?? `status ${response.status}`}).`)
    this.payment = payment
    this.status = response.status
    this.reason = why.reason
    this.detail = why.detail
    this.#response = response
  }

  /** The seller's response, with its body unread. */
  get response(): Response {
    return this.#response
  }
}

/** Sends a credential once more. The signal of the first call is not reused. */
export type Retry = (options?: { readonly signal?: AbortSignal | undefined }) => Promise<Response>

/**
 * The credential (or, for push, the money) was sent and the outcome is unknown: no response, an aborted call, or a
 * 5xx. Nothing new is signed for this call. `retry` sends the same credential again, which can be charged at most
 * once.
 *
 * @example
 * import { PaymentOutcomeUnknownError } from '@purser/sdk/pay'
 *
 * export async function fetchPaid(pay: typeof fetch, url: string): Promise<Response> {
 *   try {
 *     return await pay(url)
 *   } catch (error) {
 *     if (error instanceof PaymentOutcomeUnknownError) return error.retry()
 *     throw error
 *   }
 * }
 */
export class PaymentOutcomeUnknownError extends PaymentError {
  readonly payment: PaymentRecord
  /** The status of the response, if there was one. */
  readonly status: number | undefined
  readonly #credential: { readonly header: string; readonly value: string } | undefined
  readonly #retry: Retry

  constructor(
    payment: PaymentRecord,
    sent: { credential: { header: string; value: string } | undefined; retry: Retry },
    cause?: unknown,
  ) {
    const how = payment.status === undefined ? 'there was no answer' : `the answer was ${payment.status}`
    super('payment-outcome-unknown', `Whether ${payment.amountUsd} USD was taken is not known: ${how}.`, cause)
    this.payment = payment
    this.status = payment.status
    this.#credential = sent.credential
    this.#retry = sent.retry
  }

  /**
   * The header that was sent. Its bearer can spend it: keep it out of logs. `undefined` if a push failed before
   * its hash was known.
   */
  get credential(): { readonly header: string; readonly value: string } | undefined {
    return this.#credential
  }

  /** Sends the same credential again. Returns the response or throws another error of this class. */
  retry(options: Parameters<Retry>[0] = {}): Promise<Response> {
    return this.#retry(options)
  }
}

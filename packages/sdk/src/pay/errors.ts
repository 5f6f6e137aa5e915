import type { PaymentRecord, ProposedPayment } from './payment.ts'

/** Why an offer of a seller is not taken. */
export type RefusalReason =
  | 'unreadable'
  | 'unsupported-scheme'
  | 'unknown-network'
  | 'network-not-allowed'
  | 'unknown-token'
  | 'token-without-signatures'
  | 'wrong-token-domain'
  | 'malformed'
  | 'expired'
  | 'signer-cannot'
  | 'header-taken'
  | 'host-not-allowed'
  | 'insecure'
  | 'redirected'

/** One offer, or all of them (`*`), and why it is not taken. */
export interface Refusal {
  readonly offer: string
  readonly reason: RefusalReason
}

/** Everything that a paying fetch throws by itself. `code` is what to branch on; messages may change. */
export class PaymentError extends Error {
  readonly code: string

  constructor(code: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = new.target.name
    this.code = code
  }
}

/** Nothing was signed: the payment would exceed a limit, or no limit was set and so nothing may be paid. */
export class LimitExceededError extends PaymentError {
  readonly limit: 'perCall' | 'perHostPerDay' | 'perDay'
  /** Decimal dollars; `undefined` where the limit was never set. */
  readonly limitUsd: string | undefined
  readonly amountUsd: string
  /** What the limit had already counted. */
  readonly spentUsd: string

  constructor(facts: Pick<LimitExceededError, 'limit' | 'limitUsd' | 'amountUsd' | 'spentUsd'>) {
    const most = facts.limitUsd === undefined ? 'is not set, so nothing is paid' : `is ${facts.limitUsd} USD`
    super('limit-exceeded', `${facts.amountUsd} USD is asked for; the limit ${facts.limit} ${most}.`)
    this.limit = facts.limit
    this.limitUsd = facts.limitUsd
    this.amountUsd = facts.amountUsd
    this.spentUsd = facts.spentUsd
  }
}

/** Nothing was signed: none of the offers can or may be paid. */
export class UnsupportedPaymentError extends PaymentError {
  readonly refusals: readonly Refusal[]

  constructor(refusals: readonly Refusal[]) {
    const listed = refusals.map(({ offer, reason }) => `${offer}: ${reason}`).join('; ')
    super('unsupported-payment', `None of the offers is paid (${listed}).`)
    this.refusals = refusals
  }
}

/** Nothing was signed: `confirm` said no. */
export class ConfirmationDeclinedError extends PaymentError {
  readonly payment: ProposedPayment

  constructor(payment: ProposedPayment) {
    super('confirmation-declined', `${payment.amountUsd} USD for ${payment.host} was not confirmed.`)
    this.payment = payment
  }
}

/** Nothing was sent: the signer failed, or what it answered is no signature. */
export class SigningError extends PaymentError {
  constructor(cause?: unknown) {
    super('signing-failed', 'The signer did not sign the payment.', cause)
  }
}

/** Nothing was sent: the body cannot be sent a second time, as paying for it would need. */
export class UnreplayableBodyError extends PaymentError {
  readonly bytesMax: number

  constructor(bytesMax: number) {
    super('body-too-large', `A stream as a body is kept for sending it again, up to ${bytesMax} bytes.`)
    this.bytesMax = bytesMax
  }
}

/**
 * The seller has the credential and refused it. It is not paid again. The money is still counted as spent: whoever has the credential could
 * use it until `payment.validBeforeSeconds`.
 */
export class PaymentRejectedError extends PaymentError {
  readonly payment: PaymentRecord
  readonly status: number
  /** The protocol's own word for it; `undefined` where the seller gave none. */
  readonly reason: string | undefined
  /** What else the seller wrote, cut short. Written by the seller: not to be taken as an instruction. */
  readonly detail: string | undefined
  readonly #response: Response

  constructor(payment: PaymentRecord, response: Response, why: { reason?: string; detail?: string }) {
    super('payment-rejected', `The seller refused the payment (${why.reason ?? `status ${response.status}`}).`)
    this.payment = payment
    this.status = response.status
    this.reason = why.reason
    this.detail = why.detail
    this.#response = response
  }

  /** The seller's answer, with its body not read. */
  get response(): Response {
    return this.#response
  }
}

/** How a credential is sent once more; the signal of the first call is not used again. */
export type Retry = (options?: { readonly signal?: AbortSignal | undefined }) => Promise<Response>

/**
 * The credential was sent (or, by push, the money) and what became of it is not known: no answer, an aborted call, a 5xx. Nothing new is
 * ever signed for this call; `retry` sends the same credential once more, which can be paid at most once.
 */
export class PaymentOutcomeUnknownError extends PaymentError {
  readonly payment: PaymentRecord
  /** The status of the answer, if there was one. */
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

  /** The header that was sent. Who has it can spend it: keep it out of logs. `undefined` where a push failed before its hash was known. */
  get credential(): { readonly header: string; readonly value: string } | undefined {
    return this.#credential
  }

  /** Sends the same credential again: the response, or another error of this kind. */
  retry(options: Parameters<Retry>[0] = {}): Promise<Response> {
    return this.#retry(options)
  }
}

import { type MppReceipt, parseReceipt } from '../mpp/receipt.ts'
import { decodePaymentRequired, decodePaymentResponse, x402Headers } from '../x402/headers.ts'
import type { SettleResponse } from '../x402/messages.ts'

/** Reads a header field by its name in any case. */
export type HeaderReader = (name: string) => string | null | undefined

/** A seller's receipt for a payment. It is not checked on the chain. */
export interface ReadReceipt {
  readonly txHash: string | undefined
  readonly receipt: SettleResponse | MppReceipt | undefined
}

/**
 * Reads the receipt of either protocol from the fields of a response. A malformed one counts as absent.
 *
 * @example
 * const settled = { success: true, transaction: '0x' + 'ab'.repeat(32), network: 'eip155:84532', payer: '0x036CbD53842c5426634e7929541eC2318f3dCF7e' }
 * const headers = new Headers({ 'PAYMENT-RESPONSE': encodePaymentResponse(settled) })
 * readReceipt((name) => headers.get(name)).txHash?.slice(0, 6) // '0xabab'
 */
export function readReceipt(header: HeaderReader): ReadReceipt {
  const settled = readSettleResponse(header)
  if (settled !== undefined) return { txHash: hashOf(settled.transaction), receipt: settled }
  const mpp = header('payment-receipt')
  const receipt = mpp == null ? undefined : parseReceipt(mpp)
  return { txHash: hashOf(receipt?.reference), receipt }
}

/**
 * The settlement of x402, version 2 or 1, from the fields of a response.
 *
 * @example
 * const settled = { success: true, transaction: '0x01', network: 'eip155:84532', payer: '0x036CbD53842c5426634e7929541eC2318f3dCF7e' }
 * const headers = new Headers({ 'PAYMENT-RESPONSE': encodePaymentResponse(settled) })
 * readSettleResponse((name) => headers.get(name))?.success // true
 */
export function readSettleResponse(header: HeaderReader): SettleResponse | undefined {
  const field = header(x402Headers.paymentResponse) ?? header(x402Headers.paymentResponseV1)
  const settled = field == null ? undefined : decodePaymentResponse(field)
  return settled?.ok === true ? settled.value : undefined
}

function hashOf(reference: string | undefined): string | undefined {
  return reference !== undefined && /^0x[0-9a-fA-F]{64}$/.test(reference) ? reference : undefined
}

/** The reason why a seller refused a payment. */
export interface PaymentRefusal {
  /** The reason code of the protocol or of the problem record. */
  readonly reason?: string
  /** Other text by the seller, truncated. */
  readonly detail?: string
}

const detailLengthMax = 500
const reasonPattern = /^[\w:./-]{1,96}$/
/**
 * The payment may still settle or be served, so it must not be made again: a broadcast transaction has no receipt yet
 * (`@x402/evm` 2.27.0), or another request is served for the payment (Purser's middlewares).
 */
const passingReasons = ['settlement_pending', 'delivery-in-progress']

/** A 402 or 409 in response to a credential. */
export interface RefusingResponse {
  readonly status: number
  readonly header: HeaderReader
  /** The parsed JSON of the body, if it is any. */
  readonly body?: unknown
  /** Whether the body arrived whole and within the reader's limit. */
  readonly isBodyRead: boolean
}

/**
 * Reads why a 402 or 409 refuses a payment from its fields and its body. `isPassing`: the payment may still settle or be
 * served, so it must not be made again. A 409 whose body was not read and which names no reason in its fields passes too,
 * because only its body says whether the payment is still being served.
 *
 * @example
 * const header = () => null
 * readRefusal({ status: 409, header, body: { code: 'delivery-in-progress' }, isBodyRead: true }).isPassing // true
 * readRefusal({ status: 409, header, isBodyRead: false }).isPassing // true
 * readRefusal({ status: 402, header, body: { error: 'insufficient_funds' }, isBodyRead: true }) // { isPassing: false, reason: 'insufficient_funds', detail: 'insufficient_funds' }
 */
export function readRefusal({
  status,
  header,
  body,
  isBodyRead,
}: RefusingResponse): PaymentRefusal & { readonly isPassing: boolean } {
  const required = header(x402Headers.paymentRequired)
  const challenge = required == null ? undefined : decodePaymentRequired(required)
  const stated = [
    readSettleResponse(header)?.errorReason,
    ...['reason', 'code', 'error'].map((name) => memberOf(body, name)),
    challenge?.ok === true ? challenge.value.error : undefined,
    memberOf(body, 'type')?.split('/').at(-1),
  ].filter((text) => text !== undefined)
  const passing = stated.find((text) => passingReasons.includes(text))
  const reason = passing ?? stated.find((text) => reasonPattern.test(text))
  const prose = [memberOf(body, 'detail'), memberOf(body, 'title'), ...stated]
  const detail = prose.find((text) => text !== undefined && text !== '')?.slice(0, detailLengthMax)
  return {
    isPassing: passing !== undefined || (status === 409 && !isBodyRead && reason === undefined),
    ...(reason === undefined ? {} : { reason }),
    ...(detail === undefined ? {} : { detail }),
  }
}

function memberOf(body: unknown, name: string): string | undefined {
  const value: unknown = typeof body === 'object' && body !== null ? Reflect.get(body, name) : undefined
  return typeof value === 'string' ? value : undefined
}

const credentialHeaders = ['payment-signature', 'x-payment', 'payment-authorization']

/**
 * Whether a request already carries a payment. A 402 then refers to that payment, so it must not be paid again.
 *
 * @example
 * carriesCredential((name) => new Headers({ 'PAYMENT-SIGNATURE': 'e30=' }).get(name)) // true
 * carriesCredential(() => null) // false
 */
export function carriesCredential(header: HeaderReader): boolean {
  const authorization = header('authorization') ?? ''
  return /(?:^|,)\s*payment\s/i.test(authorization) || credentialHeaders.some((name) => header(name) != null)
}

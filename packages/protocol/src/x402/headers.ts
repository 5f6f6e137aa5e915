import { decodeJsonBase64, encodeJsonBase64 } from '../base64.ts'
import type { Parsed, PaymentPayload, PaymentRequiredV2, SettleResponse } from './messages.ts'
import { parsePaymentPayload, parsePaymentRequiredV2, parseSettleResponse } from './parse.ts'
import type { Reason } from './reasons.ts'

/**
 * The names of the headers, in which HTTP ignores letter case. Those that end in `V1` belong to version 1, which sends
 * its challenge in the body. Source: x402 `specs/transports-v2/http.md` and `specs/transports-v1/http.md`.
 */
export const x402Headers = {
  paymentRequired: 'PAYMENT-REQUIRED',
  payment: 'PAYMENT-SIGNATURE',
  paymentResponse: 'PAYMENT-RESPONSE',
  paymentV1: 'X-PAYMENT',
  paymentResponseV1: 'X-PAYMENT-RESPONSE',
} as const

/** The maximum length of a header value that is decoded, in characters. */
export const headerLengthMax = 16_384

/**
 * Encodes the value of `PAYMENT-REQUIRED`.
 *
 * @example
 * const accepts = [{ scheme: 'exact', network: 'eip155:84532', amount: '10000', asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', payTo: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C', maxTimeoutSeconds: 60 }]
 * const required = { x402Version: 2, resource: { url: 'https://api.example.com/report' }, accepts }
 * decodePaymentRequired(encodePaymentRequired(required)).value.accepts[0].amount // '10000'
 */
export function encodePaymentRequired(required: PaymentRequiredV2): string {
  return encodeJsonBase64(required)
}

/**
 * Decodes the value of `PAYMENT-REQUIRED`. Never throws.
 *
 * @example
 * decodePaymentRequired('not a challenge').ok // false
 */
export function decodePaymentRequired(header: string): Parsed<PaymentRequiredV2> {
  return decode(header, 'invalid_payment_requirements', parsePaymentRequiredV2)
}

/**
 * Encodes a payment as the value of `PAYMENT-SIGNATURE` (version 2) or `X-PAYMENT` (version 1).
 *
 * @example
 * const accepts = [{ scheme: 'exact', network: 'eip155:84532', amount: '10000', asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', payTo: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C', maxTimeoutSeconds: 60 }]
 * const required = { x402Version: 2, resource: { url: 'https://api.example.com/report' }, accepts }
 * const payment = { x402Version: 2, resource: required.resource, accepted: accepts[0], payload: { signature: '0x01', authorization: { nonce: '0x02' } } }
 * decodeJsonBase64(encodePayment(payment)).accepted.amount // '10000'
 */
export function encodePayment(payment: PaymentPayload): string {
  return encodeJsonBase64(payment)
}

/**
 * Decodes a payment from either header; the payment states its own version. A value above 16 KB, malformed base64,
 * UTF-8 or JSON, and a missing member are all `invalid_payload`. Never throws.
 *
 * @example
 * decodePayment('not a payment').ok // false
 */
export function decodePayment(header: string): Parsed<PaymentPayload> {
  return decode(header, 'invalid_payload', parsePaymentPayload)
}

/**
 * Encodes the value of `PAYMENT-RESPONSE` and `X-PAYMENT-RESPONSE`. It is sent to the buyer, so it contains the members
 * of the protocol only, whatever else the object has.
 *
 * @example
 * const settled = { success: true, transaction: '0x01', network: 'eip155:84532', payer: '0x036CbD53842c5426634e7929541eC2318f3dCF7e' }
 * decodePaymentResponse(encodePaymentResponse(settled)).value.transaction // '0x01'
 */
export function encodePaymentResponse(response: SettleResponse): string {
  const { success, errorReason, errorMessage, payer, transaction, network, amount, extensions, extra } = response
  return encodeJsonBase64({
    success,
    errorReason,
    errorMessage,
    payer,
    transaction,
    network,
    amount,
    extensions,
    extra,
  })
}

/**
 * Decodes the value of `PAYMENT-RESPONSE` or `X-PAYMENT-RESPONSE`. Never throws.
 *
 * @example
 * decodePaymentResponse('not a settlement').ok // false
 */
export function decodePaymentResponse(header: string): Parsed<SettleResponse> {
  return decode(header, 'unexpected_settle_error', parseSettleResponse)
}

function decode<T>(header: string, reason: Reason, parse: (value: unknown) => Parsed<T>): Parsed<T> {
  const value = header.length > headerLengthMax ? undefined : decodeJsonBase64(header)
  if (value !== undefined) return parse(value)
  return { ok: false, fault: { reason, path: '', message: 'must be base64 of JSON, at most 16 KB' } }
}

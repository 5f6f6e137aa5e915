import { decodeJsonBase64, encodeJsonBase64 } from '../base64.ts'
import type { Parsed, PaymentPayload, PaymentRequiredV2, SettleResponse } from './messages.ts'
import { parsePaymentPayload, parsePaymentRequiredV2, parseSettleResponse } from './parse.ts'
import type { Reason } from './reasons.ts'

/**
 * The names of the headers; HTTP does not look at their case. `payment` and `paymentResponse` are version 2's, the others
 * version 1's, whose challenge is a body and no header.
 * Source: x402 `specs/transports-v2/http.md` and `specs/transports-v1/http.md`.
 */
export const x402Headers = {
  paymentRequired: 'PAYMENT-REQUIRED',
  payment: 'PAYMENT-SIGNATURE',
  paymentResponse: 'PAYMENT-RESPONSE',
  paymentV1: 'X-PAYMENT',
  paymentResponseV1: 'X-PAYMENT-RESPONSE',
} as const

/** The longest header value that is decoded, in characters. */
export const headerLengthMax = 16_384

/**
 * The value of `PAYMENT-REQUIRED`.
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
 * Reads a `PAYMENT-REQUIRED`.
 *
 * @example
 * decodePaymentRequired('not a challenge').ok // false
 */
export function decodePaymentRequired(header: string): Parsed<PaymentRequiredV2> {
  return decode(header, 'invalid_payment_requirements', parsePaymentRequiredV2)
}

/**
 * The value of `PAYMENT-SIGNATURE` for a payment of version 2, of `X-PAYMENT` for one of version 1.
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
 * Reads a payment from either header; the message itself says its version. A value above 16 KB, broken base64, broken UTF-8 or
 * broken JSON is `invalid_payload`, like a message that lacks something.
 *
 * @example
 * decodePayment('not a payment').ok // false
 */
export function decodePayment(header: string): Parsed<PaymentPayload> {
  return decode(header, 'invalid_payload', parsePaymentPayload)
}

/**
 * The value of `PAYMENT-RESPONSE` and `X-PAYMENT-RESPONSE`. It goes to the buyer, so only the protocol's members are written,
 * whatever else the object holds.
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
 * Reads a `PAYMENT-RESPONSE` or `X-PAYMENT-RESPONSE`.
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

import { type MppReceipt, parseReceipt } from '../mpp/receipt.ts'
import { decodePaymentResponse, x402Headers } from '../x402/headers.ts'
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

/**
 * Whether the reason of a 402 or 409 says that the payment may still settle or be served, so that it must not be made
 * again: a broadcast transaction has no receipt yet (`@x402/evm` 2.27.0), or another request is served for the payment
 * (Purser's middlewares).
 *
 * @example
 * isPassingRefusal('delivery-in-progress') // true
 * isPassingRefusal('insufficient_funds') // false
 */
export function isPassingRefusal(reason: string | undefined): boolean {
  return reason === 'settlement_pending' || reason === 'delivery-in-progress'
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

import {
  decodePaymentRequired,
  decodePaymentResponse,
  type MppReceipt,
  parseReceipt,
  type SettleResponse,
  x402Headers,
} from '@purser/protocol'
import { jsonOf } from './challenge.ts'

const detailLengthMax = 500
const reasonPattern = /^[\w:./-]{1,96}$/

/** A seller's receipt for a payment. It is not checked on the chain. */
export interface ReadReceipt {
  readonly txHash: string | undefined
  readonly receipt: SettleResponse | MppReceipt | undefined
}

/** Reads the receipt of either protocol from the response headers. A malformed one counts as absent. */
export function readReceipt({ headers }: Response): ReadReceipt {
  const x402 = headers.get(x402Headers.paymentResponse) ?? headers.get(x402Headers.paymentResponseV1)
  const settled = x402 === null ? undefined : decodePaymentResponse(x402)
  if (settled?.ok === true) return { txHash: hashOf(settled.value.transaction), receipt: settled.value }
  const mpp = headers.get('payment-receipt')
  const receipt = mpp === null ? undefined : parseReceipt(mpp)
  return { txHash: hashOf(receipt?.reference), receipt }
}

function hashOf(reference: string | undefined): string | undefined {
  return reference !== undefined && /^0x[0-9a-fA-F]{64}$/.test(reference) ? reference : undefined
}

/**
 * Why a seller refused a payment: the protocol's reason code from the headers or body, and further text. The body
 * stays readable.
 */
export async function whyRejected(response: Response): Promise<{ reason?: string; detail?: string }> {
  const { headers } = response
  const settled = headers.get(x402Headers.paymentResponse) ?? headers.get(x402Headers.paymentResponseV1)
  const required = headers.get(x402Headers.paymentRequired)
  const receipt = settled === null ? undefined : decodePaymentResponse(settled)
  const challenge = required === null ? undefined : decodePaymentRequired(required)
  const body = await jsonOf(response)
  const said = [
    receipt?.ok === true ? receipt.value.errorReason : undefined,
    ...['reason', 'code', 'error'].map((name) => memberOf(body, name)),
    challenge?.ok === true ? challenge.value.error : undefined,
    memberOf(body, 'type')?.split('/').at(-1),
  ]
  const reason = said.find((text) => text !== undefined && reasonPattern.test(text))
  const prose = [memberOf(body, 'detail'), memberOf(body, 'title'), ...said]
  const detail = prose.find((text) => text !== undefined && text !== '')?.slice(0, detailLengthMax)
  return { ...(reason === undefined ? {} : { reason }), ...(detail === undefined ? {} : { detail }) }
}

function memberOf(body: unknown, name: string): string | undefined {
  const value: unknown = typeof body === 'object' && body !== null ? Reflect.get(body, name) : undefined
  return typeof value === 'string' ? value : undefined
}

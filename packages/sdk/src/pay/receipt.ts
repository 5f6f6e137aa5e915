import { decodePaymentRequired, readSettleResponse, x402Headers } from '@purser/protocol'
import { jsonOf } from './challenge.ts'

const detailLengthMax = 500
const reasonPattern = /^[\w:./-]{1,96}$/

/**
 * Why a seller refused a payment: the protocol's reason code from the headers or body, and further text. The body
 * stays readable.
 */
export async function whyRejected(response: Response): Promise<{ reason?: string; detail?: string }> {
  const { headers } = response
  const required = headers.get(x402Headers.paymentRequired)
  const challenge = required === null ? undefined : decodePaymentRequired(required)
  const body = await jsonOf(response)
  const stated = [
    readSettleResponse((name) => headers.get(name))?.errorReason,
    ...['reason', 'code', 'error'].map((name) => memberOf(body, name)),
    challenge?.ok === true ? challenge.value.error : undefined,
    memberOf(body, 'type')?.split('/').at(-1),
  ]
  const reason = stated.find((text) => text !== undefined && reasonPattern.test(text))
  const prose = [memberOf(body, 'detail'), memberOf(body, 'title'), ...stated]
  const detail = prose.find((text) => text !== undefined && text !== '')?.slice(0, detailLengthMax)
  return { ...(reason === undefined ? {} : { reason }), ...(detail === undefined ? {} : { detail }) }
}

function memberOf(body: unknown, name: string): string | undefined {
  const value: unknown = typeof body === 'object' && body !== null ? Reflect.get(body, name) : undefined
  return typeof value === 'string' ? value : undefined
}

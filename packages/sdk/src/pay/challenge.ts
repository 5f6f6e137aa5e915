import { x402Headers } from '@purser/protocol'
import { readBytes } from './bounded.ts'
import { offersOfMpp } from './mpp-offers.ts'
import type { Reading } from './offers.ts'
import type { Payer } from './payer.ts'
import { offersOfV1, offersOfV2 } from './x402-offers.ts'

/** The maximum number of bytes read of a 402 body. */
export const challengeBytesMax = 262_144

/**
 * All offers of a 402 in both protocols; empty if it has none. The body, which carries the challenge of version 1, is
 * read only if no header has a payable offer, and from a copy, so that the response stays unread.
 */
export async function offersOf(payer: Payer, response: Response, sent: Headers): Promise<readonly Reading[]> {
  const required = response.headers.get(x402Headers.paymentRequired)
  const authenticate = response.headers.get('www-authenticate')
  const v2 = required === null ? [] : offersOfV2(payer, required)
  const mpp = authenticate === null ? [] : offersOfMpp(payer, authenticate, sent)
  const isPayable = [...v2, ...mpp].some((reading) => 'quote' in reading)
  const v1 = isPayable ? [] : offersOfV1(payer, await jsonOf(response))
  return [...v2, ...mpp, ...v1]
}

/** The JSON of a response body, which stays readable. `undefined` if it is not JSON or exceeds the limit. */
export async function jsonOf(response: Response): Promise<unknown> {
  try {
    const { body } = response.clone()
    const bytes = body === null ? undefined : await readBytes(body, challengeBytesMax)
    return bytes === undefined || bytes === 'too-large' ? undefined : JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    return undefined
  }
}

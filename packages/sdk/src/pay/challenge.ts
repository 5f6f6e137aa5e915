import { x402Headers } from '@purser/protocol'
import { readBytes } from './bounded.ts'
import { offersOfMpp } from './mpp-offers.ts'
import type { Reading } from './offers.ts'
import type { Payer } from './payer.ts'
import { offersOfV1, offersOfV2 } from './x402-offers.ts'

/** The most of a 402's body that is read. */
export const challengeBytesMax = 262_144

/**
 * Every offer in a 402, of both protocols; none where it speaks neither. Version 1's challenge is a body, read only where no header offers
 * anything payable, from a copy: the response stays unread.
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

/** The JSON in a response's body, which stays readable; `undefined` for anything else, a body above the bound included. */
export async function jsonOf(response: Response): Promise<unknown> {
  try {
    const { body } = response.clone()
    const bytes = body === null ? undefined : await readBytes(body, challengeBytesMax)
    return bytes === undefined || bytes === 'too-large' ? undefined : JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    return undefined
  }
}

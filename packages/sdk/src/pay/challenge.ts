import { type OfferRules, offersOfMpp, offersOfV1, offersOfV2, x402Headers } from '@purser/protocol'
import { timeLimit } from '../time-limit.ts'
import { readBytes } from './bounded.ts'
import type { Payer } from './payer.ts'
import { quoteOf, type Reading } from './quotes.ts'

/** The maximum number of bytes read of a 402 body. */
const challengeBytesMax = 262_144
/** Most chunks of it with fewer than 64 bytes on average: each costs a hundred times as much memory as its byte. */
const tinyChunksMax = 16_384

/**
 * All offers of a 402 in both protocols; empty if it has none. The body, which carries the challenge of version 1, is
 * read only if no header has a payable offer, and from a copy, so that the response stays unread.
 */
export async function offersOf(payer: Payer, response: Response, sent: Headers): Promise<readonly Reading[]> {
  const required = response.headers.get(x402Headers.paymentRequired)
  const authenticate = response.headers.get('www-authenticate')
  const rules = rulesOf(payer)
  const v2 = required === null ? [] : offersOfV2(rules, required)
  const mpp = authenticate === null ? [] : offersOfMpp(rules, authenticate, (header) => sent.has(header))
  const inHeaders = [...v2, ...mpp].map((reading) => quoteOf(payer, reading))
  if (inHeaders.some((reading) => 'quote' in reading)) return inHeaders
  const v1 = offersOfV1(rules, await jsonOf(response))
  return [...inHeaders, ...v1.map((reading) => quoteOf(payer, reading))]
}

function rulesOf({ now, limits, tokenAt }: Payer): OfferRules {
  return { nowMs: now(), isAllowed: ({ name }) => limits.networks?.has(name) !== false, tokenAt }
}

/** Of a body that did not arrive whole, or exceeds the limit of bytes or of time. */
export const unread = Symbol('unread')

/** The JSON of a response body, which stays readable. `undefined` if it is not JSON. */
export async function jsonOf(response: Response): Promise<unknown> {
  const text = await textOf(response)
  try {
    return text === unread ? unread : JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Most milliseconds that a refusal or a challenge may take to arrive: the caller learns only then what was paid. */
const challengeMsMax = 10_000

/** The text of a response body, which stays readable. */
export async function textOf(response: Response): Promise<string | typeof unread> {
  const limits = { bytesMax: challengeBytesMax, tinyChunksMax }
  const late = timeLimit(challengeMsMax, undefined)
  try {
    const { body } = response.clone()
    const bytes = body === null ? new Uint8Array() : await readBytes(body, limits, late.signal)
    return bytes === 'too-large' ? unread : new TextDecoder().decode(bytes)
  } catch {
    return unread
  } finally {
    late.end()
  }
}

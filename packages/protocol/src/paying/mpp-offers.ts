import { parseInstant } from '../iso-instant.ts'
import type { MppChallenge } from '../mpp/challenge.ts'
import { parseChallenges } from '../mpp/challenge-header.ts'
import { type EvmChargeRequest, parseEvmChargeRequest, parseTempoChargeRequest } from '../mpp/charge.ts'
import { decodeMppJson } from '../mpp/encoding.ts'
import { chargeNonce } from '../mpp/evm-nonce.ts'
import { formatPayerSource } from '../mpp/source.ts'
import { networks } from '../networks.ts'
import type { JsonObject } from '../x402/messages.ts'
import { authorizationDraft, authorizationSecondsMax, whyNotAuthorizable } from './draft.ts'
import {
  type OfferReading,
  type OfferRefusalReason,
  type OfferRules,
  type Price,
  priceOf,
  refusedOffer,
} from './offer.ts'

/** The maximum length of `WWW-Authenticate`, in characters. The specification requires clients to accept 4 KB. */
export const mppAuthenticateLengthMax = 65_536

const expirySecondsDefault = 300
const paymentScheme = /(?:^|,)\s*payment\s/i
const tokenPattern = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/
/**
 * Headers that a challenge may not name for the credential: they have another meaning, or browsers do not send them.
 */
const keptHeaders =
  /^(?:accept.*|connection|content-.*|cookie2?|date|dnt|expect|host|idempotency-key|keep-alive|origin|payment-signature|permissions-policy|proxy-.*|referer|sec-.*|te|trailer|transfer-encoding|upgrade|via|x-payment)$/i

/**
 * Reads all challenges of the scheme `Payment` in `WWW-Authenticate`, payable or refused. Ignores other schemes.
 * Reads a limited number of challenges.
 *
 * @example
 * const rules = { nowMs: 0, isAllowed: () => true, tokenAt: () => undefined }
 * offersOfMpp(rules, 'Payment id=""', () => false) // [ { refusal: { offer: 'mpp', reason: 'unreadable' } } ]
 * offersOfMpp(rules, 'Basic realm="api"', () => false) // []
 */
export function offersOfMpp(
  rules: OfferRules,
  authenticate: string,
  isTaken: (header: string) => boolean,
): readonly OfferReading[] {
  const challenges = authenticate.length > mppAuthenticateLengthMax ? [] : parseChallenges(authenticate)
  if (challenges.length === 0 && paymentScheme.test(authenticate)) return [refusedOffer(['mpp'], 'unreadable')]
  return challenges.map((challenge) => readChallenge(rules, challenge, isTaken))
}

function readChallenge(rules: OfferRules, challenge: MppChallenge, isTaken: (header: string) => boolean): OfferReading {
  const name = ['mpp', `${challenge.method}.${challenge.intent}`]
  const reason = whyNotHeader(challenge, isTaken) ?? whyNotInTime(rules, challenge)
  if (reason !== undefined) return refusedOffer(name, reason)
  const request = decodeMppJson(challenge.request)
  if (request === undefined) return refusedOffer(name, 'malformed')
  const read = readers.get(`${challenge.method}/${challenge.intent}`)
  const reading = read?.(rules, challenge, request) ?? 'unsupported-scheme'
  return typeof reading === 'string' ? refusedOffer(name, reading) : reading
}

const readers = new Map([
  ['evm/charge', readEvmCharge],
  ['tempo/charge', readTempoCharge],
])

/** A credential never replaces a header that the caller sends, such as an API key in `Authorization`. */
function whyNotHeader(challenge: MppChallenge, isTaken: (header: string) => boolean): OfferRefusalReason | undefined {
  const header = mppHeaderOf(challenge)
  if (!tokenPattern.test(header) || keptHeaders.test(header)) return 'malformed'
  return isTaken(header) ? 'header-taken' : undefined
}

/**
 * Returns the name of the header field that carries the credential of a challenge.
 *
 * @example
 * const request = { amount: '10000', currency: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', recipient: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C' }
 * const challenge = { id: 'c1', realm: 'api.example.com', method: 'evm', intent: 'charge', request: encodeMppJson(request) }
 * mppHeaderOf(challenge) // 'Authorization'
 * mppHeaderOf({ ...challenge, header: 'Payment-Authorization' }) // 'Payment-Authorization'
 */
export function mppHeaderOf(challenge: MppChallenge): string {
  return challenge.header ?? 'Authorization'
}

function whyNotInTime({ nowMs }: OfferRules, { expires }: MppChallenge): OfferRefusalReason | undefined {
  if (expires === undefined) return undefined
  const expiresAtMs = parseInstant(expires)
  if (expiresAtMs === undefined) return 'malformed'
  return expiresAtMs <= nowMs ? 'expired' : undefined
}

function readEvmCharge(
  rules: OfferRules,
  challenge: MppChallenge,
  request: JsonObject,
): OfferReading | OfferRefusalReason {
  const charge = parseEvmChargeRequest(request)
  if (charge === undefined) return 'malformed'
  if (!charge.credentialTypes.includes('authorization')) return 'unsupported-scheme'
  const price = priceOfCharge(rules, charge)
  if (typeof price === 'string') return price
  if (charge.decimals !== price.token.decimals) return 'malformed'
  const reason = whyNotAuthorizable(price)
  if (reason !== undefined) return reason
  const { id, realm } = challenge
  return {
    offer: {
      ...price,
      kind: 'authorization',
      protocol: 'mpp',
      method: 'mpp/evm-charge',
      expiresAtMs: expiryOf(challenge),
      resource: undefined,
      challengeKey: `mpp ${JSON.stringify([realm, id])}`,
      // The nonce is derived from the challenge, so that the authorization pays for this challenge only (draft-evm-charge).
      draft({ from, nowMs }) {
        const terms = { from, nonce: chargeNonce(id, realm) }
        const { domain, authorization, wire } = authorizationDraft(price, terms, mppEndSeconds(challenge, nowMs))
        const source = formatPayerSource({ chainId: price.network.chainId, address: from })
        const credential = { challenge, source }
        return {
          domain,
          authorization,
          credential: { kind: 'mpp', header: mppHeaderOf(challenge), credential, authorization: wire },
        }
      },
    },
  }
}

function readTempoCharge(
  rules: OfferRules,
  challenge: MppChallenge,
  request: JsonObject,
): OfferReading | OfferRefusalReason {
  const charge = parseTempoChargeRequest(request)
  if (charge === undefined) return 'malformed'
  const price = priceOfCharge(rules, charge)
  if (typeof price === 'string') return price
  if (price.network.nativeCoin !== null) return 'unsupported-scheme'
  const { feePayer = false, supportedModes: modes = ['pull', 'push'] } = charge
  const method = 'mpp/tempo-charge' as const
  const expiresAtMs = expiryOf(challenge)
  const terms = { method, expiresAtMs, resource: undefined, challenge, feePayer, modes } as const
  return { offer: { ...price, kind: 'tempo', protocol: 'mpp', ...terms } }
}

function priceOfCharge(
  rules: OfferRules,
  { chainId, currency, amount, recipient }: Pick<EvmChargeRequest, 'chainId' | 'currency' | 'amount' | 'recipient'>,
): Price | OfferRefusalReason {
  const network = networks.find((known) => known.chainId === chainId)
  return priceOf(rules, { network, asset: currency, amount, payTo: recipient })
}

function expiryOf({ expires }: MppChallenge): number | undefined {
  return expires === undefined ? undefined : parseInstant(expires)
}

/**
 * Returns the time until which a signature for a challenge is valid, in seconds since 1970: at most an hour from now.
 *
 * @example
 * const request = { amount: '10000', currency: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', recipient: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C' }
 * const challenge = { id: 'c1', realm: 'api.example.com', method: 'evm', intent: 'charge', request: encodeMppJson(request) }
 * mppEndSeconds({ ...challenge, expires: '2026-11-26T12:01:00Z' }, Date.parse('2026-11-26T12:00:00Z')) - Date.parse('2026-11-26T12:00:00Z') / 1_000 // 60
 */
export function mppEndSeconds(challenge: MppChallenge, nowMs: number): number {
  const nowSeconds = Math.floor(nowMs / 1_000)
  const expiresAtMs = expiryOf(challenge)
  if (expiresAtMs === undefined) return nowSeconds + expirySecondsDefault
  return Math.min(Math.floor(expiresAtMs / 1_000), nowSeconds + authorizationSecondsMax)
}

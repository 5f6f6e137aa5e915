import {
  chargeNonce,
  decodeMppJson,
  type EvmChargeRequest,
  formatMppCredential,
  formatPayerSource,
  type Hex,
  type JsonObject,
  type MppChallenge,
  networks,
  parseChallenges,
  parseEvmChargeRequest,
  parseTempoChargeRequest,
} from '@purser/protocol'
import { authorizationSecondsMax, signAuthorization, whyNotAuthorizable } from './authorization.ts'
import type { RefusalReason } from './errors.ts'
import { type Price, priceOf, type Reading, refused } from './offers.ts'
import type { Payer } from './payer.ts'
import type { Credential } from './payment.ts'
import { tempoWayOf } from './tempo.ts'

/** The longest `WWW-Authenticate` that is read, in characters. The specification requires clients to accept 4 KB. */
export const authenticateLengthMax = 65_536

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
 */
export function offersOfMpp(payer: Payer, authenticate: string, sent: Headers): readonly Reading[] {
  const challenges = authenticate.length > authenticateLengthMax ? [] : parseChallenges(authenticate)
  if (challenges.length === 0 && paymentScheme.test(authenticate)) return [refused(['mpp'], 'unreadable')]
  return challenges.map((challenge) => readChallenge(payer, challenge, sent))
}

function readChallenge(payer: Payer, challenge: MppChallenge, sent: Headers): Reading {
  const name = ['mpp', `${challenge.method}.${challenge.intent}`]
  const reason = whyNotHeader(challenge, sent) ?? whyNotInTime(payer, challenge)
  if (reason !== undefined) return refused(name, reason)
  const request = decodeMppJson(challenge.request)
  if (request === undefined) return refused(name, 'malformed')
  const read = readers.get(`${challenge.method}/${challenge.intent}`)
  const reading = read?.(payer, challenge, request) ?? 'unsupported-scheme'
  return typeof reading === 'string' ? refused(name, reading) : reading
}

const readers = new Map([
  ['evm/charge', readEvmCharge],
  ['tempo/charge', readTempoCharge],
])

/** A credential never replaces a header that the caller sends, such as an API key in `Authorization`. */
function whyNotHeader(challenge: MppChallenge, sent: Headers): RefusalReason | undefined {
  const header = headerOf(challenge)
  if (!tokenPattern.test(header) || keptHeaders.test(header)) return 'malformed'
  return sent.has(header) ? 'header-taken' : undefined
}

function headerOf(challenge: MppChallenge): string {
  return challenge.header ?? 'Authorization'
}

function whyNotInTime(payer: Payer, { expires }: MppChallenge): RefusalReason | undefined {
  if (expires === undefined) return undefined
  const expiresAtMs = Date.parse(expires)
  if (Number.isNaN(expiresAtMs)) return 'malformed'
  return expiresAtMs <= payer.now() ? 'expired' : undefined
}

function readEvmCharge(payer: Payer, challenge: MppChallenge, request: JsonObject): Reading | RefusalReason {
  const charge = parseEvmChargeRequest(request)
  if (charge === undefined) return 'malformed'
  if (!charge.credentialTypes.includes('authorization')) return 'unsupported-scheme'
  const price = priceOfCharge(payer, charge)
  if (typeof price === 'string') return price
  if (charge.decimals !== price.token.decimals) return 'malformed'
  const sign = () => signEvm(payer, price, challenge)
  const { expiresAtMs } = endOf(payer, challenge)
  return (
    whyNotAuthorizable(price) ?? {
      quote: { protocol: 'mpp', method: 'mpp/evm-charge', ...price, expiresAtMs, spendsOnSigning: false, sign },
    }
  )
}

function readTempoCharge(payer: Payer, challenge: MppChallenge, request: JsonObject): Reading | RefusalReason {
  const charge = parseTempoChargeRequest(request)
  if (charge === undefined) return 'malformed'
  const price = priceOfCharge(payer, charge)
  if (typeof price === 'string') return price
  if (price.network.nativeCoin !== null) return 'unsupported-scheme'
  const { expiresAtMs, endSeconds } = endOf(payer, challenge)
  const way = tempoWayOf(payer, {
    price,
    challenge,
    endSeconds,
    feePayer: charge.feePayer === true,
    modes: charge.supportedModes ?? ['pull', 'push'],
  })
  if (way === undefined) return 'signer-cannot'
  const sign = async () => credentialOf(payer, { challenge, price, ...(await way.sign()) })
  const { spendsOnSigning } = way
  return { quote: { protocol: 'mpp', method: 'mpp/tempo-charge', ...price, expiresAtMs, spendsOnSigning, sign } }
}

function priceOfCharge(
  payer: Payer,
  { chainId, currency, amount, recipient }: Pick<EvmChargeRequest, 'chainId' | 'currency' | 'amount' | 'recipient'>,
): Price | RefusalReason {
  const network = networks.find((known) => known.chainId === chainId)
  return priceOf(payer, { network, asset: currency, amount, payTo: recipient })
}

/**
 * The nonce is derived from the challenge, so that the authorization pays for this challenge only (draft-evm-charge).
 */
async function signEvm(payer: Payer, price: Price, challenge: MppChallenge): Promise<Credential> {
  const nonce: Hex = chargeNonce(challenge.id, challenge.realm)
  const validBeforeSeconds = endOf(payer, challenge).endSeconds
  const { signature, authorization } = await signAuthorization(payer, price, { nonce, validBeforeSeconds })
  const payload = { type: 'authorization', ...authorization, signature }
  return credentialOf(payer, { challenge, price, payload, validBeforeSeconds })
}

function credentialOf(
  payer: Payer,
  signed: {
    readonly challenge: MppChallenge
    readonly price: Price
    readonly payload: JsonObject
    readonly validBeforeSeconds: number | undefined
  },
): Credential {
  const { challenge, price, payload, validBeforeSeconds } = signed
  const source = formatPayerSource({ chainId: price.network.chainId, address: payer.address })
  return { header: headerOf(challenge), value: formatMppCredential({ challenge, payload, source }), validBeforeSeconds }
}

/** When the challenge expires, and until when a signature for it is valid: at most an hour. */
function endOf(
  payer: Payer,
  { expires }: MppChallenge,
): { readonly expiresAtMs: number | undefined; readonly endSeconds: number } {
  const nowSeconds = Math.floor(payer.now() / 1_000)
  if (expires === undefined) return { expiresAtMs: undefined, endSeconds: nowSeconds + expirySecondsDefault }
  const expiresAtMs = Date.parse(expires)
  const endSeconds = Math.min(Math.floor(expiresAtMs / 1_000), nowSeconds + authorizationSecondsMax)
  return { expiresAtMs, endSeconds }
}

import { decodeJsonBase64 } from '../base64.ts'
import { networkByCaip2, networkByX402V1Name } from '../chains.ts'
import { headerLengthMax, x402Headers } from '../x402/headers.ts'
import type { JsonObject, PaymentRequirementsV1, PaymentRequirementsV2 } from '../x402/messages.ts'
import { parsePaymentRequiredV1, parsePaymentRequiredV2 } from '../x402/parse.ts'
import { authorizationDraft, authorizationSecondsMax, whyNotAuthorizable } from './draft.ts'
import {
  type AuthorizationOffer,
  type OfferReading,
  type OfferRefusalReason,
  type OfferRules,
  type Price,
  priceOf,
  type RequestedPrice,
  refusedOffer,
} from './offer.ts'

type Requirements = PaymentRequirementsV1 | PaymentRequirementsV2

/**
 * Reads all offers of a `PAYMENT-REQUIRED` header, payable or refused.
 *
 * @example
 * const rules = { nowMs: 0, isAllowed: () => true, tokenAt: () => undefined }
 * offersOfV2(rules, 'not a challenge') // [ { refusal: { offer: 'x402', reason: 'unreadable' } } ]
 */
export function offersOfV2(rules: OfferRules, header: string): readonly OfferReading[] {
  const raw = header.length > headerLengthMax ? undefined : decodeJsonBase64(header)
  const required = parsePaymentRequiredV2(raw)
  if (!required.ok) return [refusedOffer(['x402'], 'unreadable')]
  const { resource, extensions } = required.value
  return required.value.accepts.map((offer, index) => {
    const accepted = { ...offer, ...rawOffer(raw, index) }
    return readOffer(rules, offer, {
      method: 'x402/v2',
      header: x402Headers.payment,
      message: { x402Version: 2, resource, accepted, extensions },
      resource: resource.url,
    })
  })
}

/**
 * Reads all offers of a version 1 challenge in a 402 body. Empty if the body is something else.
 *
 * @example
 * const rules = { nowMs: 0, isAllowed: () => true, tokenAt: () => undefined }
 * offersOfV1(rules, { x402Version: 1 }) // [ { refusal: { offer: 'x402', reason: 'unreadable' } } ]
 * offersOfV1(rules, 'not a challenge') // []
 */
export function offersOfV1(rules: OfferRules, body: unknown): readonly OfferReading[] {
  const required = parsePaymentRequiredV1(body)
  if (!required.ok) return isVersion1(body) ? [refusedOffer(['x402'], 'unreadable')] : []
  return required.value.accepts.map((offer) => {
    const { scheme, network } = offer
    const message = { x402Version: 1, scheme, network }
    const { resource } = offer
    return readOffer(rules, offer, { method: 'x402/v1', header: x402Headers.paymentV1, message, resource })
  })
}

/** Whether a 402 body is meant as a version 1 challenge. */
function isVersion1(body: unknown): boolean {
  return typeof body === 'object' && body !== null && 'x402Version' in body && body.x402Version === 1
}

interface Way {
  readonly method: AuthorizationOffer['method']
  readonly header: string
  /** The credential without its `payload`. */
  readonly message: JsonObject
  readonly resource: string
}

function readOffer(rules: OfferRules, offer: Requirements, way: Way): OfferReading {
  const name = ['x402', offer.scheme, offer.network]
  if (offer.scheme !== 'exact') return refusedOffer(name, 'unsupported-scheme')
  const price = priceOf(rules, requestedOf(offer))
  if (typeof price === 'string') return refusedOffer(name, price)
  const reason = whyNotAuthorizable(price) ?? whyNotDomain(offer.extra, price)
  return reason === undefined ? { offer: payable(price, offer, way) } : refusedOffer(name, reason)
}

function payable(
  price: Price,
  { maxTimeoutSeconds, extra, payTo }: Requirements,
  { method, header, message, resource }: Way,
): AuthorizationOffer {
  const id = extra?.challengeId
  const challengeKey = typeof id === 'string' && id !== '' ? `x402 ${payTo.toLowerCase()} ${id}` : undefined
  return {
    ...price,
    kind: 'authorization',
    protocol: 'x402',
    method,
    expiresAtMs: undefined,
    resource,
    challengeKey,
    draft(terms) {
      const seconds = Math.floor(terms.nowMs / 1_000) + Math.ceil(Math.min(maxTimeoutSeconds, authorizationSecondsMax))
      const { domain, authorization, wire } = authorizationDraft(price, terms, seconds)
      return { domain, authorization, credential: { kind: 'x402', header, message, authorization: wire } }
    },
  }
}

function requestedOf(offer: Requirements): RequestedPrice {
  const { asset, payTo } = offer
  if ('amount' in offer) return { network: networkByCaip2(offer.network), asset, payTo, amount: offer.amount }
  return { network: networkByX402V1Name(offer.network), asset, payTo, amount: offer.maxAmountRequired }
}

/** A seller that uses another domain than the token's own would refuse every valid signature. */
function whyNotDomain(extra: JsonObject | undefined, { token }: Price): OfferRefusalReason | undefined {
  const transfer = extra?.assetTransferMethod ?? 'eip3009'
  if (transfer !== 'eip3009') return 'unsupported-scheme'
  const isOurs = extra?.name === token.eip712?.name && extra?.version === token.eip712?.version
  return isOurs ? undefined : 'wrong-token-domain'
}

/** The offer as it was sent. Servers compare all of its members, including those that are not read here. */
function rawOffer(required: unknown, index: number): JsonObject {
  if (typeof required !== 'object' || required === null || !('accepts' in required)) return {}
  const offer: unknown = Array.isArray(required.accepts) ? required.accepts[index] : undefined
  return isObject(offer) ? offer : {}
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

import {
  decodeJsonBase64,
  encodePayment,
  headerLengthMax,
  type JsonObject,
  networkByCaip2,
  networkByX402V1Name,
  type PaymentRequiredV1,
  type PaymentRequiredV2,
  type PaymentRequirementsV1,
  type PaymentRequirementsV2,
  parsePaymentRequiredV1,
  parsePaymentRequiredV2,
  x402Headers,
} from '@purser/protocol'
import { authorizationSecondsMax, signAuthorization, whyNotAuthorizable } from './authorization.ts'
import type { RefusalReason } from './errors.ts'
import { type Price, priceOf, type Reading, type Requested, refused } from './offers.ts'
import type { Payer } from './payer.ts'
import type { Credential, Quote } from './payment.ts'

type Requirements = PaymentRequirementsV1 | PaymentRequirementsV2

/** Reads all offers of a `PAYMENT-REQUIRED` header, payable or refused. */
export function offersOfV2(payer: Payer, header: string): readonly Reading[] {
  const raw = header.length > headerLengthMax ? undefined : decodeJsonBase64(header)
  const required = parsePaymentRequiredV2(raw)
  if (!required.ok) return [refused(['x402'], 'unreadable')]
  return required.value.accepts.map((offer, index) => {
    const accepted = { ...offer, ...rawOffer(raw, index) }
    return readOffer(payer, offer, (price) => ({
      method: 'x402/v2',
      sign: () => signV2(payer, price, { required: required.value, accepted }),
    }))
  })
}

/** Reads all offers of a version 1 challenge in a 402 body. Empty if the body is something else. */
export function offersOfV1(payer: Payer, body: unknown): readonly Reading[] {
  const required = parsePaymentRequiredV1(body)
  if (!required.ok) return isVersion1(body) ? [refused(['x402'], 'unreadable')] : []
  return required.value.accepts.map((offer) =>
    readOffer(payer, offer, (price) => ({ method: 'x402/v1', sign: () => signV1(payer, price, offer) })),
  )
}

/** Whether a 402 body is meant as a version 1 challenge. */
function isVersion1(body: unknown): boolean {
  return typeof body === 'object' && body !== null && 'x402Version' in body && body.x402Version === 1
}

type Way = Pick<Quote, 'method' | 'sign'>

function readOffer(payer: Payer, offer: Requirements, way: (price: Price) => Way): Reading {
  const name = ['x402', offer.scheme, offer.network]
  if (offer.scheme !== 'exact') return refused(name, 'unsupported-scheme')
  const price = priceOf(payer, requestedOf(offer))
  if (typeof price === 'string') return refused(name, price)
  const reason = whyNotAuthorizable(price) ?? whyNotDomain(offer.extra, price)
  if (reason !== undefined) return refused(name, reason)
  return { quote: { protocol: 'x402', ...price, ...way(price), expiresAtMs: undefined, spendsOnSigning: false } }
}

function requestedOf(offer: Requirements): Requested {
  const { asset, payTo } = offer
  if ('amount' in offer) return { network: networkByCaip2(offer.network), asset, payTo, amount: offer.amount }
  return { network: networkByX402V1Name(offer.network), asset, payTo, amount: offer.maxAmountRequired }
}

/** A seller that uses another domain than the token's own would refuse every valid signature. */
function whyNotDomain(extra: JsonObject | undefined, { token }: Price): RefusalReason | undefined {
  const transfer = extra?.assetTransferMethod ?? 'eip3009'
  if (transfer !== 'eip3009') return 'unsupported-scheme'
  const isOurs = extra?.name === token.eip712?.name && extra?.version === token.eip712?.version
  return isOurs ? undefined : 'wrong-token-domain'
}

async function signV2(
  payer: Payer,
  price: Price,
  { required, accepted }: { readonly required: PaymentRequiredV2; readonly accepted: PaymentRequirementsV2 },
): Promise<Credential> {
  const validBeforeSeconds = validBefore(payer, accepted)
  const payload = await signAuthorization(payer, price, { nonce: payer.randomHex(32), validBeforeSeconds })
  const { resource, extensions } = required
  const value = encodePayment({ x402Version: 2, resource, accepted, payload, extensions })
  return { header: x402Headers.payment, value, validBeforeSeconds }
}

async function signV1(payer: Payer, price: Price, offer: PaymentRequiredV1['accepts'][number]): Promise<Credential> {
  const validBeforeSeconds = validBefore(payer, offer)
  const payload = await signAuthorization(payer, price, { nonce: payer.randomHex(32), validBeforeSeconds })
  const value = encodePayment({ x402Version: 1, scheme: offer.scheme, network: offer.network, payload })
  return { header: x402Headers.paymentV1, value, validBeforeSeconds }
}

function validBefore(payer: Payer, { maxTimeoutSeconds }: Requirements): number {
  return Math.floor(payer.now() / 1_000) + Math.ceil(Math.min(maxTimeoutSeconds, authorizationSecondsMax))
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

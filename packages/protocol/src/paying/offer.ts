import { type Address, parseAddress } from '../address.ts'
import type { Hex } from '../bytes.ts'
import type { Eip712Domain, TransferAuthorization } from '../eip712.ts'
import { parseRaw } from '../money.ts'
import type { MppChallenge } from '../mpp/challenge.ts'
import type { TempoChargeMode } from '../mpp/charge.ts'
import type { MppCredential } from '../mpp/credential.ts'
import type { TokenInfo } from '../network-facts.ts'
import type { Network } from '../networks.ts'
import type { JsonObject, WireAuthorization } from '../x402/messages.ts'
import { usdOf } from './dollars.ts'

/** A credential without its signature, as JSON. */
export type CredentialDraft =
  | {
      readonly kind: 'x402'
      readonly header: string
      readonly message: JsonObject
      readonly authorization: WireAuthorization
    }
  | {
      readonly kind: 'mpp'
      readonly header: string
      readonly credential: Omit<MppCredential, 'payload'>
      readonly authorization: WireAuthorization
    }

/** The reason why an offer of a 402 is not payable. */
export type OfferRefusalReason =
  | 'unreadable'
  | 'unsupported-scheme'
  | 'unknown-network'
  | 'network-not-allowed'
  | 'unknown-token'
  | 'token-without-signatures'
  | 'wrong-token-domain'
  | 'malformed'
  | 'expired'
  | 'header-taken'

/** An offer that is not payable, by its name, with the reason. */
export interface OfferRefusal {
  readonly offer: string
  readonly reason: OfferRefusalReason
}

/** The supported payment protocols. */
export type PayingProtocol = 'x402' | 'mpp'

/** The payment method: x402 `exact` in version 2 or 1, or an MPP method. */
export type PayingMethod = 'x402/v2' | 'x402/v1' | 'mpp/evm-charge' | 'mpp/tempo-charge'

/** The price of an offer, as the seller wrote it. */
export interface RequestedPrice {
  readonly network: Network | undefined
  readonly asset: string
  readonly amount: string
  readonly payTo: string
}

/** A validated price. */
export interface Price {
  readonly network: Network
  readonly token: TokenInfo
  readonly rawAmount: bigint
  /** In units of 10^-18 dollars. */
  readonly usd: bigint
  readonly payTo: Address
}

/**
 * The payer and the time of an authorization. `nonce` has 32 bytes; an offer that derives the nonce from its challenge
 * ignores it.
 */
export interface DraftTerms {
  readonly from: Address
  readonly nonce: Hex
  readonly nowMs: number
}

/** A complete message to sign, and the credential that lacks only its signature. */
export interface AuthorizationDraft {
  readonly domain: Eip712Domain
  readonly authorization: TransferAuthorization
  readonly credential: CredentialDraft
}

interface AnyOffer extends Price {
  readonly protocol: PayingProtocol
  readonly method: PayingMethod
  /** The expiry of the offer, in milliseconds since 1970. `undefined` if it does not expire. */
  readonly expiresAtMs: number | undefined
  /** The URL that the seller names as paid for, unchecked. `undefined` if the protocol names none. */
  readonly resource: string | undefined
}

/** An offer that an EIP-3009 signature pays. */
export interface AuthorizationOffer extends AnyOffer {
  readonly kind: 'authorization'
  /** Identifies the challenge, provided that the seller's ids are unique. `undefined` if the challenge has no id. */
  readonly challengeKey: string | undefined
  readonly draft: (terms: DraftTerms) => AuthorizationDraft
}

/** An offer that a Tempo transaction or a proof pays. */
export interface TempoOffer extends AnyOffer {
  readonly kind: 'tempo'
  readonly challenge: MppChallenge
  readonly feePayer: boolean
  readonly modes: readonly TempoChargeMode[]
}

export type Offer402 = AuthorizationOffer | TempoOffer

/** A parsed offer: payable, or the reason why not. */
export type OfferReading = { readonly offer: Offer402 } | { readonly refusal: OfferRefusal }

/** The terms that the payer accepts. */
export interface OfferRules {
  readonly nowMs: number
  readonly isAllowed: (network: Network) => boolean
  readonly tokenAt: (network: Network, address: string) => TokenInfo | undefined
}

/**
 * Returns the dollar price of an offer, or why it is unknown. Only registered tokens are priced: a seller's claims
 * about the name, decimals or value of another token are not trusted.
 */
export function priceOf(
  { isAllowed, tokenAt }: OfferRules,
  { network, asset, amount, payTo }: RequestedPrice,
): Price | OfferRefusalReason {
  if (network === undefined) return 'unknown-network'
  if (!isAllowed(network)) return 'network-not-allowed'
  const token = tokenAt(network, asset)
  if (token === undefined) return 'unknown-token'
  const rawAmount = parseRaw(amount)
  const receiver = parseAddress(payTo)
  if (typeof rawAmount !== 'bigint' || receiver === undefined || /^0x0{40}$/.test(receiver)) return 'malformed'
  return { network, token, rawAmount, usd: usdOf(rawAmount, token), payTo: receiver }
}

/** A refused offer. Its name is the seller's text, so only safe characters of it are shown. */
export function refusedOffer(offer: readonly string[], reason: OfferRefusalReason): OfferReading {
  const tame = offer.map((part) => (/^[\w:.-]{1,64}$/.test(part) ? part : '?'))
  return { refusal: { offer: tame.join(' '), reason } }
}

/**
 * Orders offers: by preference, then the cheapest, then x402 before MPP; equal ones keep the seller's order.
 *
 * @example
 * const [base, tempo] = [networkByName('base'), networkByName('tempo')]
 * const offers = [{ protocol: 'x402', network: base, usd: 1n }, { protocol: 'mpp', network: tempo, usd: 2n }]
 * offers.sort(offerOrder(['mpp/tempo']))[0].protocol // 'mpp'
 */
export function offerOrder(prefer: readonly string[]): (left: RankedOffer, right: RankedOffer) => number {
  return (left, right) =>
    rank(prefer, left) - rank(prefer, right) || byPrice(left, right) || family(left) - family(right)
}

type RankedOffer = Pick<Offer402, 'protocol' | 'network' | 'usd'>

function rank(prefer: readonly string[], { protocol, network: { name } }: RankedOffer): number {
  const names: readonly string[] = [protocol, name, `${protocol}/${name}`]
  const found = prefer.findIndex((preference) => names.includes(preference))
  return found === -1 ? prefer.length : found
}

/**
 * Orders offers by their dollar price.
 *
 * @example
 * [{ usd: 2n }, { usd: 1n }].sort(byPrice) // [ { usd: 1n }, { usd: 2n } ]
 */
export function byPrice(left: Pick<Price, 'usd'>, right: Pick<Price, 'usd'>): number {
  return left.usd < right.usd ? -1 : left.usd > right.usd ? 1 : 0
}

function family({ protocol }: RankedOffer): number {
  return protocol === 'x402' ? 0 : 1
}

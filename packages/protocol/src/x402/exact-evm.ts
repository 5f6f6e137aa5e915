import type { Address } from '../address.ts'
import { parseAddress } from '../address.ts'
import { networkByCaip2, networkByX402V1Name, tokenByAddress } from '../chains.ts'
import { type Keccak, keccak256 } from '../hash.ts'
import { parseRaw } from '../money.ts'
import type { TokenInfo } from '../network-facts.ts'
import type { Network } from '../networks.ts'
import type {
  JsonObject,
  PaymentRequiredV1,
  PaymentRequiredV2,
  PaymentRequirementsV1,
  PaymentRequirementsV2,
  ResourceInfo,
  SupportedResponse,
} from './messages.ts'
import type { Reason } from './reasons.ts'

/** The required payment: amount, token, network and receiver. `rawAmount` is in the token's smallest unit. */
export type Expected = {
  readonly network: Network
  readonly token: TokenInfo
  readonly rawAmount: bigint
  readonly payTo: Address
  /** If set, the offer that a version 2 payment accepted must have exactly this value. */
  readonly maxTimeoutSeconds?: number | undefined
}

/** An offer of a challenge. */
export type Offer = Expected & {
  readonly resource: string
  readonly description: string
  readonly mimeType: string
  readonly maxTimeoutSeconds: number
}

/**
 * Returns an offer in the form of version 2. Throws a `RangeError` for a token without EIP-3009.
 *
 * @example
 * const network = networkByName('base-sepolia')
 * const offer = { network, token: tokenBySymbol(network, 'USDC'), rawAmount: 10_000n, payTo: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C', maxTimeoutSeconds: 60 }
 * requirementsV2(offer).amount // '10000'
 */
export function requirementsV2(offer: Offer): PaymentRequirementsV2 {
  return {
    scheme: 'exact',
    network: offer.network.caip2,
    amount: offer.rawAmount.toString(),
    asset: offer.token.address,
    payTo: offer.payTo,
    maxTimeoutSeconds: offer.maxTimeoutSeconds,
    extra: domainExtra(offer.token),
  }
}

/**
 * Returns an offer in the form of version 1; `undefined` if version 1 has no name for the network. Throws as
 * `requirementsV2` does.
 *
 * @example
 * const network = networkByName('base-sepolia')
 * const offer = { network, token: tokenBySymbol(network, 'USDC'), rawAmount: 10_000n, payTo: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C', maxTimeoutSeconds: 60 }
 * requirementsV1(offer).maxAmountRequired // '10000'
 */
export function requirementsV1(offer: Offer): PaymentRequirementsV1 | undefined {
  if (offer.network.x402V1Name === null) return undefined
  return {
    scheme: 'exact',
    network: offer.network.x402V1Name,
    maxAmountRequired: offer.rawAmount.toString(),
    resource: offer.resource,
    description: offer.description,
    mimeType: offer.mimeType,
    payTo: offer.payTo,
    maxTimeoutSeconds: offer.maxTimeoutSeconds,
    asset: offer.token.address,
    extra: domainExtra(offer.token),
  }
}

/**
 * Returns the challenge of version 2.
 *
 * @example
 * const network = networkByName('base-sepolia')
 * const offer = { network, token: tokenBySymbol(network, 'USDC'), rawAmount: 10_000n, payTo: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C', maxTimeoutSeconds: 60 }
 * paymentRequiredV2({ offers: [offer], resource: { url: 'https://api.example.com/report' } }).accepts.length // 1
 */
export function paymentRequiredV2(challenge: {
  readonly offers: readonly Offer[]
  readonly resource: ResourceInfo
  readonly error?: string
}): PaymentRequiredV2 {
  return {
    x402Version: 2,
    error: challenge.error,
    resource: challenge.resource,
    accepts: challenge.offers.map(requirementsV2),
  }
}

/**
 * Returns the challenge of version 1, or `undefined` if version 1 has no name for any of the networks. The last version
 * 1 SDK rejects a whole challenge that names a network it does not know. Such networks are therefore omitted, unless no
 * other remains.
 *
 * @example
 * const network = networkByName('base-sepolia')
 * const offer = { network, token: tokenBySymbol(network, 'USDC'), rawAmount: 10_000n, payTo: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C', resource: 'https://api.example.com/report', description: 'A report', mimeType: 'application/json', maxTimeoutSeconds: 60 }
 * paymentRequiredV1({ offers: [offer] }).accepts[0].network // 'base-sepolia'
 * paymentRequiredV1({ offers: [] }) // undefined
 */
export function paymentRequiredV1(challenge: {
  readonly offers: readonly Offer[]
  readonly error?: string
}): PaymentRequiredV1 | undefined {
  const named = challenge.offers.flatMap((offer) => requirementsV1(offer) ?? [])
  const readable = named.filter(({ network }) => networkByX402V1Name(network)?.isInX402V1Sdk)
  const accepts = readable.length > 0 ? readable : named
  return accepts.length === 0 ? undefined : { x402Version: 1, error: challenge.error, accepts }
}

/**
 * Returns the `/supported` response of a facilitator: scheme `exact` on these networks, in both versions, sent by these
 * accounts.
 *
 * @example
 * supportedResponse([networkByName('base-sepolia')], ['0x209693Bc6afc0C5328bA36FaF03C514EF312287C']).kinds // [ { x402Version: 2, scheme: 'exact', network: 'eip155:84532' }, { x402Version: 1, scheme: 'exact', network: 'base-sepolia' } ]
 */
export function supportedResponse(networks: readonly Network[], signers: readonly Address[]): SupportedResponse {
  const paying = networks.filter((network) => network.settlesEip3009)
  const v2 = paying.map(({ caip2 }) => ({ x402Version: 2, scheme: 'exact', network: caip2 }))
  const v1 = paying.flatMap(({ x402V1Name }) =>
    x402V1Name === null ? [] : [{ x402Version: 1, scheme: 'exact', network: x402V1Name }],
  )
  return { kinds: [...v2, ...v1], extensions: [], signers: { 'eip155:*': signers } }
}

/**
 * Reads requirements of a third party, or returns the reason why they are not supported. Only tokens of the registry
 * are supported, because an unknown contract could return anything.
 *
 * @example
 * const network = networkByName('base-sepolia')
 * const offer = { network, token: tokenBySymbol(network, 'USDC'), rawAmount: 10_000n, payTo: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C', maxTimeoutSeconds: 60 }
 * expectedOf(requirementsV2(offer)).rawAmount // 10000n
 * expectedOf({ ...requirementsV2(offer), network: 'eip155:1234567' }) // 'invalid_network'
 */
export function expectedOf(
  requirements: PaymentRequirementsV1 | PaymentRequirementsV2,
  keccak: Keccak = keccak256,
): Expected | Reason {
  if (requirements.scheme !== 'exact') return 'invalid_exact_evm_scheme'
  const isV2 = 'amount' in requirements
  const network = isV2 ? networkByCaip2(requirements.network) : networkByX402V1Name(requirements.network)
  const domain = whyNotDomain(requirements.extra, undefined)
  if (domain !== undefined) return domain
  if (network === undefined) return 'invalid_network'
  const token = tokenByAddress(network, requirements.asset)
  const payTo = parseAddress(requirements.payTo, keccak)
  const rawAmount = parseRaw(isV2 ? requirements.amount : requirements.maxAmountRequired)
  if (token === undefined || payTo === undefined || typeof rawAmount !== 'bigint') return 'invalid_payment_requirements'
  return whyNotDomain(requirements.extra, token) ?? { network, token, rawAmount, payTo }
}

/**
 * Returns why the EIP-712 domain in `extra` cannot be the token's, or `undefined` if it can be. Without a token, only
 * checks that there is a domain.
 */
export function whyNotDomain(extra: JsonObject | undefined, token: TokenInfo | undefined): Reason | undefined {
  if (typeof extra?.name !== 'string' || extra.name === '') return 'invalid_exact_evm_missing_eip712_domain'
  if (typeof extra.version !== 'string' || extra.version === '') return 'invalid_exact_evm_missing_eip712_domain'
  if (token === undefined) return undefined
  if (!token.eip3009 || token.eip712 === null) return 'invalid_exact_evm_eip3009_not_supported'
  if (extra.name !== token.eip712.name) return 'invalid_exact_evm_token_name_mismatch'
  if (extra.version !== token.eip712.version) return 'invalid_exact_evm_token_version_mismatch'
  return undefined
}

function domainExtra(token: TokenInfo): JsonObject {
  if (!token.eip3009 || token.eip712 === null)
    throw new RangeError(`${token.symbol} does not support EIP-3009, so a signature cannot pay it`)
  return { name: token.eip712.name, version: token.eip712.version }
}

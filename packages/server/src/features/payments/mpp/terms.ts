import { hash } from 'node:crypto'
import {
  type Chain,
  decodeMppJson,
  type JsonObject,
  type MppChallenge,
  type Network,
  resolveNetwork,
  type TokenInfo,
  tokenBySymbol,
} from '@purser/protocol'
import type { ReceivingWallet } from '../../wallets/index.ts'
import { isFree, rawAmountOf, tokensByAuthorization } from '../credential.ts'
import { fail } from '../errors.ts'
import { mppMethodOn } from '../methods/index.ts'
import type { MppMethod } from '../methods/method.ts'
import type { Ctx } from '../ports.ts'

/** One way to pay a price by MPP. */
export interface MppTerms {
  readonly method: MppMethod
  readonly chain: Chain
  readonly network: Network
  readonly token: TokenInfo
  /** In the token's smallest unit; 0n requires only a proof of the account. */
  readonly rawAmount: bigint
}

/**
 * Returns the ways to pay this price to this wallet: on Tempo any token of the wallet, elsewhere the tokens with EIP-3009, since
 * official clients sign only an authorization there. A price of zero is paid by a proof, whose chain is the environment's Tempo
 * network wherever the wallet is.
 */
export function mppTermsOf(
  ctx: Pick<Ctx, 'chains' | 'tenant'>,
  wallet: ReceivingWallet,
  price: string,
): readonly MppTerms[] {
  if (isFree(price)) return [proofTerms(ctx, wallet, price)]
  const { chain, network } = wallet
  return chargeableTokens(ctx, wallet).map((token) => {
    const rawAmount = rawAmountOf(price, token)
    return { method: mppMethodOn(network), chain, network, token, rawAmount }
  })
}

function chargeableTokens(ctx: Pick<Ctx, 'chains'>, wallet: ReceivingWallet): readonly TokenInfo[] {
  if (wallet.network.settlesEip3009) return tokensByAuthorization(ctx, wallet)
  return wallet.supportedTokens.flatMap((symbol) => tokenBySymbol(wallet.network, symbol) ?? [])
}

function proofTerms(ctx: Pick<Ctx, 'tenant'>, wallet: ReceivingWallet, price: string): MppTerms {
  const network = resolveNetwork('tempo', ctx.tenant.environment)
  const token = network?.tokens[0]
  if (network === undefined || token === undefined) throw fail('chain-not-supported')
  const chain = wallet.network.name === network.name ? wallet.chain : 'tempo'
  return { method: mppMethodOn(network), chain, network, token, rawAmount: rawAmountOf(price, token) }
}

/** The scope of a challenge: one resource, or everything on one host. */
export interface Scope {
  /** The host's name without its port, as `mppx validate` requires. */
  readonly realm: string
  /** A digest of the resource, which travels in `opaque.r`. */
  readonly digest: string
}

/**
 * Returns the scope of a challenge: its resource without the fragment, which no server receives; or the host, where only a host
 * was named.
 */
export function scopeOf(place: {
  readonly resource?: string | undefined
  readonly hostname?: string | undefined
}): Scope {
  if (place.resource === undefined) return hostScope(new URL(`https://${place.hostname}/`).hostname)
  const url = new URL(place.resource)
  url.hash = ''
  return { realm: url.hostname, digest: digestOf(url.href) }
}

/**
 * Whether a challenge of this service was made for this resource. A challenge for a resource is valid only for that resource
 * including its query; otherwise the cheapest route would open its neighbors. A challenge for a host is valid for everything on
 * it.
 */
export function isInScope(challenge: MppChallenge, resource: string | undefined): boolean {
  const { r: digest } = opaqueIn(challenge)
  const scope = resource === undefined ? undefined : scopeOf({ resource })
  if (scope?.realm === challenge.realm && digest === scope.digest) return true
  if (digest !== hostScope(challenge.realm).digest) return false
  return scope === undefined || scope.realm === challenge.realm
}

/**
 * Whether the challenge promised its price to requests of this method for its resource. A challenge for a host promises none: its
 * host may sell at several prices.
 */
export function isPricedFor(challenge: MppChallenge, method: string | undefined): boolean {
  const { m: promised } = opaqueIn(challenge)
  return promised !== undefined && promised === method && !isForHost(challenge)
}

function isForHost(challenge: MppChallenge): boolean {
  return opaqueIn(challenge).r === hostScope(challenge.realm).digest
}

function opaqueIn({ opaque }: MppChallenge): JsonObject {
  return (opaque === undefined ? undefined : decodeMppJson(opaque)) ?? {}
}

function hostScope(realm: string): Scope {
  return { realm, digest: digestOf(`host:${realm}`) }
}

function digestOf(text: string): string {
  return hash('sha256', text, 'buffer').subarray(0, 16).toString('base64url')
}

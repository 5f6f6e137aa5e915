import { type Network, priceInStablecoin, type TokenInfo, tokenBySymbol } from '@purser/protocol'
import type { ReceivingWallet } from '../wallets/index.ts'
import { fail, failBody } from './errors.ts'
import type { Ctx } from './ports.ts'

/**
 * Returns the tokens of the wallet that a signed authorization can move on its network, in the owner's order; possibly none.
 * Excludes a token whose domain differs on chain from the registry. Includes a token that no node has reported on yet: no payment
 * is accepted before its domain is checked (`refuseDomainMismatch`).
 */
export function tokensByAuthorization(ctx: Pick<Ctx, 'chains'>, wallet: ReceivingWallet): readonly TokenInfo[] {
  if (!wallet.network.settlesEip3009) return []
  const tokens = wallet.supportedTokens.flatMap((symbol) => tokenBySymbol(wallet.network, symbol) ?? [])
  return tokens.filter((token) => token.eip3009 && ctx.chains.tokenDomainState(wallet.network, token) !== 'wrong')
}

/** Returns `tokensByAuthorization`; throws if there are none. */
export function payableTokens(ctx: Pick<Ctx, 'chains'>, wallet: ReceivingWallet): readonly TokenInfo[] {
  const payable = tokensByAuthorization(ctx, wallet)
  if (payable.length === 0) throw fail('chain-not-supported')
  return payable
}

/** Whether the price is zero, in any notation. */
export function isFree(price: string): boolean {
  return /^0(\.0+)?$/.test(price)
}

/**
 * Returns a US dollar price in the token's smallest unit: one stablecoin is one dollar. Refuses digits that the token cannot
 * represent.
 */
export function rawAmountOf(price: string, token: TokenInfo): bigint {
  const raw = priceInStablecoin(price, token)
  if (typeof raw !== 'bigint') throw failBody('amount-invalid', { reason: raw })
  return raw
}

/** Returns `rawAmountOf` of a price above zero: a transfer of nothing would cost gas and move no money. */
export function rawPrice(price: string, token: TokenInfo): bigint {
  const raw = rawAmountOf(price, token)
  if (raw === 0n) throw failBody('amount-invalid', { reason: 'zero' })
  return raw
}

/** Gas to settle the cheapest payment, including its share of a transaction. */
const gasOfCheapest = 70_000n

/**
 * Whether a challenge may charge this amount: settling must not cost more than the amount now. Where the payer pays the gas, only
 * the operator's minimum applies.
 */
export function isWorthSettling(ctx: PriceCtx, network: Network, token: TokenInfo, raw: bigint): boolean {
  return !isBelow(
    raw,
    token,
    nanoUsdMin(ctx, network.settlesEip3009 ? ctx.gasPrices.knownCostOf(network, gasOfCheapest) : 0n),
  )
}

/**
 * Refuses a price that no challenge of the last minutes could have offered. An offered price is accepted even if gas has become
 * more expensive since.
 */
export function refuseBelowMinimum(ctx: PriceCtx, network: Network, token: TokenInfo, raw: bigint): void {
  const leastCost = network.settlesEip3009 ? ctx.gasPrices.leastCostOf(network, gasOfCheapest) : 0n
  if (isBelow(raw, token, nanoUsdMin(ctx, leastCost))) throw failBody('amount-below-minimum')
}

type PriceCtx = Pick<Ctx, 'settleMicroUsdMin' | 'gasPrices'>

function nanoUsdMin({ settleMicroUsdMin }: PriceCtx, cost: bigint): bigint {
  const least = settleMicroUsdMin * 1_000n
  return cost > least ? cost : least
}

function isBelow(raw: bigint, { decimals }: TokenInfo, nanoUsd: bigint): boolean {
  return raw * 1_000_000_000n < nanoUsd * 10n ** BigInt(decimals)
}

import { type Network, priceInStablecoin, type TokenInfo, tokenBySymbol } from '@purser/protocol'
import type { Ctx } from '../../platform/ctx.ts'
import type { ReceivingWallet } from '../wallets/index.ts'
import { fail, failBody } from './errors.ts'

/**
 * The tokens of the wallet that a signed authorisation can move on its network, in the owner's order; maybe none. One that the chain says
 * is another than the registry knows is not among them; one that no node could be asked about yet is, since no payment is taken
 * before it was asked (`refuseStrangeToken`).
 */
export function tokensByAuthorization(ctx: Pick<Ctx, 'chains'>, wallet: ReceivingWallet): readonly TokenInfo[] {
  if (!wallet.network.settlesEip3009) return []
  const tokens = wallet.supportedTokens.flatMap((symbol) => tokenBySymbol(wallet.network, symbol) ?? [])
  return tokens.filter((token) => token.eip3009 && ctx.chains.tokenDomainState(wallet.network, token) !== 'wrong')
}

/** The same where one must be there. */
export function payableTokens(ctx: Pick<Ctx, 'chains'>, wallet: ReceivingWallet): readonly TokenInfo[] {
  const payable = tokensByAuthorization(ctx, wallet)
  if (payable.length === 0) throw fail('chain-not-supported')
  return payable
}

/** Whether nothing is asked for, however the zero is written. */
export function isFree(price: string): boolean {
  return /^0(\.0+)?$/.test(price)
}

/** A US dollar price in the token's smallest unit: one stablecoin is one dollar; digits that the token cannot hold are refused. */
export function rawAmountOf(price: string, token: TokenInfo): bigint {
  const raw = priceInStablecoin(price, token)
  if (typeof raw !== 'bigint') throw failBody('amount-invalid', { reason: raw })
  return raw
}

/** The same where something must be paid: a transfer of nothing would cost gas and move no money. */
export function rawPrice(price: string, token: TokenInfo): bigint {
  const raw = rawAmountOf(price, token)
  if (raw === 0n) throw failBody('amount-invalid', { reason: 'zero' })
  return raw
}

/** Gas that settling the cheapest payment uses, its share of a transaction included. */
const gasOfCheapest = 70_000n

/** Whether a challenge may ask for it: what settling costs now is not above it. Where the payer pays the gas, the operator's minimum alone counts. */
export function isWorthSettling(ctx: PriceCtx, network: Network, token: TokenInfo, raw: bigint): boolean {
  return !isBelow(
    raw,
    token,
    nanoUsdMin(ctx, network.settlesEip3009 ? ctx.gasPrices.knownCostOf(network, gasOfCheapest) : 0n),
  )
}

/** Refuses a price that no challenge of the last minutes asked for: what was offered is taken, though gas has become dearer since. */
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

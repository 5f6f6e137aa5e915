import { priceInStablecoin, type TokenInfo, tokenBySymbol } from '@purser/protocol'
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

/** Whether it would cost more to settle than the operator wants to carry. */
export function isBelowMinimum(ctx: Pick<Ctx, 'settleMicroUsdMin'>, raw: bigint, token: TokenInfo): boolean {
  return raw * 1_000_000n < ctx.settleMicroUsdMin * 10n ** BigInt(token.decimals)
}

/** Refuses a price below the operator's minimum. */
export function refuseBelowMinimum(ctx: Ctx, raw: bigint, token: TokenInfo): void {
  if (isBelowMinimum(ctx, raw, token)) throw failBody('amount-below-minimum')
}

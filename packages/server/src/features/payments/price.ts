import { priceInStablecoin, type TokenInfo } from '@purser/protocol'
import type { Ctx } from '../../platform/ctx.ts'
import type { ReceivingWallet } from '../wallets/index.ts'
import { fail, failBody } from './errors.ts'

/** The tokens of the wallet that a signed authorisation can move on its network, in the owner's order. */
export function payableTokens(wallet: ReceivingWallet): readonly TokenInfo[] {
  const tokens = wallet.supportedTokens.flatMap(
    (symbol) => wallet.network.tokens.find((token) => token.symbol === symbol) ?? [],
  )
  const payable = wallet.network.settlesEip3009 ? tokens.filter((token) => token.eip3009) : []
  if (payable.length === 0) throw fail('chain-not-supported')
  return payable
}

/** A US dollar price in the token's smallest unit: one stablecoin is one dollar; digits that the token cannot hold are refused. */
export function rawPrice(price: string, token: TokenInfo): bigint {
  const raw = priceInStablecoin(price, token)
  if (typeof raw !== 'bigint') throw failBody('amount-invalid', { reason: raw })
  if (raw === 0n) throw failBody('amount-invalid', { reason: 'zero' })
  return raw
}

/** Refuses what would cost more to settle than the operator wants to carry. */
export function refuseBelowMinimum(ctx: Ctx, raw: bigint, token: TokenInfo): void {
  if (raw * 1_000_000n < ctx.settleMicroUsdMin * 10n ** BigInt(token.decimals)) throw failBody('amount-below-minimum')
}

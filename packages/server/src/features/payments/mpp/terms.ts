import { type Chain, type Network, resolveNetwork, type TokenInfo, tokenBySymbol } from '@purser/protocol'
import type { ReceivingWallet } from '../../wallets/index.ts'
import { fail } from '../errors.ts'
import { mppMethodOn } from '../methods/index.ts'
import type { MppMethod } from '../methods/method.ts'
import type { Ctx } from '../ports.ts'
import { isFree, rawAmountOf, tokensByAuthorization } from '../price.ts'

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
export function mppTermsOf(ctx: Ctx, wallet: ReceivingWallet, price: string): readonly MppTerms[] {
  if (isFree(price)) return [proofTerms(ctx, wallet, price)]
  const { chain, network } = wallet
  return chargeableTokens(ctx, wallet).map((token) => {
    const rawAmount = rawAmountOf(price, token)
    return { method: mppMethodOn(network), chain, network, token, rawAmount }
  })
}

function chargeableTokens(ctx: Ctx, wallet: ReceivingWallet): readonly TokenInfo[] {
  if (wallet.network.settlesEip3009) return tokensByAuthorization(ctx, wallet)
  return wallet.supportedTokens.flatMap((symbol) => tokenBySymbol(wallet.network, symbol) ?? [])
}

function proofTerms(ctx: Ctx, wallet: ReceivingWallet, price: string): MppTerms {
  const network = resolveNetwork('tempo', ctx.tenant.environment)
  const token = network?.tokens[0]
  if (network === undefined || token === undefined) throw fail('chain-not-supported')
  const chain = wallet.network.name === network.name ? wallet.chain : 'tempo'
  return { method: mppMethodOn(network), chain, network, token, rawAmount: rawAmountOf(price, token) }
}

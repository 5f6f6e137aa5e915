import { type Chain, type Network, type TokenInfo, tokenBySymbol } from '@purser/protocol'
import { z } from 'zod'
import type { Environment } from '../../../platform/ctx.ts'
import { networkFor } from '../../chains/index.ts'
import { failLegacy } from '../errors.ts'

export const LegacyCoin = z.enum(['USDC_E', 'USDC', 'USDT'])
export type LegacyCoin = z.output<typeof LegacyCoin>

const chainOf = { USDC_E: 'tempo', USDC: 'ethereum', USDT: 'ethereum' } as const satisfies Record<LegacyCoin, Chain>

/** Tempo's test network has no bridged USDC; its own dollar, from its faucet, is used instead. */
const testToken: Partial<Record<LegacyCoin, string>> = { USDC_E: 'pathUSD' }

/** The network of a coin, and its token there. */
export interface CoinToken {
  readonly coin: LegacyCoin
  readonly chain: Chain
  readonly network: Network
  readonly token: TokenInfo
}

/** The coins that exist in an environment; there is no USDT on Ethereum's test network. */
export function coinsOf(environment: Environment): CoinToken[] {
  return LegacyCoin.options.flatMap((coin) => {
    const chain = chainOf[coin]
    const network = networkFor(chain, environment)
    const symbol = network.isTestnet ? (testToken[coin] ?? coin) : coin
    const token = tokenBySymbol(network, symbol)
    return token === undefined ? [] : [{ coin, chain, network, token }]
  })
}

/** The coin's network and token, or a 422 that lists the available coins. */
export function placeOf(coin: LegacyCoin, environment: Environment): CoinToken {
  const known = coinsOf(environment)
  const place = known.find((one) => one.coin === coin)
  if (place === undefined) throw failLegacy('coin-not-available', { coin, available: known.map((one) => one.coin) })
  return place
}

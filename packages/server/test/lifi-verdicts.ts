import { type Address, type Hex, zeroAddress } from '@purser/protocol'
import { type GuardRules, whyNotSigned } from '../src/partners/routing/guard.ts'
import { readLifiCall } from '../src/partners/routing/lifi-calls.ts'
import { lifiDiamond } from '../src/partners/routing/lifi-contracts.ts'
import type { RouteRequest } from '../src/partners/routing/port.ts'
import { aSwap, bridging, multipleSwaps, singleSwap, swappingAndBridging } from './partner-calls.ts'
import { endOn, requestFor } from './routes.ts'

export const swap = requestFor(endOn('ethereum', 'USDC'), endOn('ethereum', 'USDT'))
const toCoin = requestFor(endOn('base', 'USDC'), endOn('base', 'native'))
const ofCoin = requestFor(endOn('base', 'native'), endOn('base', 'USDC'), 10n ** 18n)
export const bridge = requestFor(endOn('base', 'USDC'), endOn('ethereum', 'USDT'))

export const rules: GuardRules & { readonly rawOutMin: bigint } = {
  targets: [lifiDiamond],
  read: (data) => readLifiCall(data, { chainId: 0 }),
  rawOutMin: 9_900_000n,
}

export function verdict(request: RouteRequest, data: Hex) {
  const { chainId } = request.from.network
  const value = request.from.token.address === zeroAddress ? request.rawAmount : 0n
  const read = (bytes: Hex) => readLifiCall(bytes, { chainId })
  return whyNotSigned([{ chainId, to: lifiDiamond, value, data }], request, { ...rules, read })
}

/** Valid calls, one per supported function. */
export const good: readonly (readonly [string, RouteRequest, Hex])[] = [
  ['single, token to token', swap, singleSwap(swap)],
  ['single, token to coin', toCoin, singleSwap(toCoin)],
  ['single, coin to token', ofCoin, singleSwap(ofCoin)],
  ['multiple, token to token', swap, multipleSwaps(swap)],
  ['multiple, token to coin', toCoin, multipleSwaps(toCoin)],
  ['multiple, coin to token', ofCoin, multipleSwaps(ofCoin, [aSwap(ofCoin, { requiresDeposit: false })])],
  ['Across', bridge, bridging(bridge)],
  ['swap, then Across', bridge, swappingAndBridging(bridge)],
]

export const other: Address = '0x00000000000000000000000000000000000000aa'

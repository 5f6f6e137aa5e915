import { type Address, formatAmount, type Hex, l1FeeOf } from '@purser/protocol'
import type { OfferedFees, Receipt } from '../../chain/port.ts'

/** A token or a chain's own coin, as an amount of it is counted. */
export interface Coin {
  readonly symbol: string
  readonly decimals: number
  /** Undefined for the chain's own coin. */
  readonly address: Address | undefined
}

/** What a wallet must have of a coin, and what it has that is not promised already; in the smallest unit. */
export interface Need {
  readonly coin: Coin
  readonly required: bigint
  readonly available: bigint
  /** What it has besides and waits for the screening of its sender. */
  readonly held?: bigint
}

/** What a problem record says of it: amounts in whole tokens. */
export interface Shortage {
  readonly token: string
  readonly required: string
  readonly available: string
  /** Left out where nothing waits for the screening of its sender. */
  readonly held?: string
}

/** Those needs that are not met, as a caller is told of them; several of one coin count together. */
export function shortagesOf(needs: readonly Need[]): Shortage[] {
  const bySymbol = new Map<string, Need>()
  for (const need of needs) {
    const before = bySymbol.get(need.coin.symbol)
    bySymbol.set(need.coin.symbol, { ...need, required: need.required + (before?.required ?? 0n) })
  }
  return [...bySymbol.values()]
    .filter(({ required, available }) => required > available)
    .map(({ coin, required, available, held = 0n }) => ({
      token: coin.symbol,
      required: formatAmount(required, coin.decimals),
      available: formatAmount(available < 0n ? 0n : available, coin.decimals),
      ...(held > 0n ? { held: formatAmount(held, coin.decimals) } : {}),
    }))
}

/** Gas of a plain payment of the coin to an account without code. */
export const plainGas = 21_000n

/**
 * The limit to send a call with that was tried at this much gas: a fifth more, since the state that it meets may be another. A plain
 * payment costs what it costs.
 */
export function gasLimitOf(triedGas: bigint): bigint {
  return triedGas === plainGas ? plainGas : (triedGas * 6n) / 5n
}

/** What gas costs and what the network takes beside it, by which a transaction's cost is counted. */
export type Prices = Pick<OfferedFees, 'maxFee' | 'l1Fee'>

/** Most wei that a transaction costs beside the value that it moves: what its account must have when a node takes it. */
export function feeOfCall(
  { gasLimit, data }: { readonly gasLimit: bigint; readonly data: Hex },
  prices: Prices,
): bigint {
  return feeOfGas({ gasLimit, dataBytes: bytesOf(data) }, prices)
}

export function bytesOf(data: Hex): number {
  return data.length / 2 - 1
}

/** The same, by the number of bytes of its call data. */
export function feeOfGas(
  { gasLimit, dataBytes }: { readonly gasLimit: bigint; readonly dataBytes: number },
  { maxFee, l1Fee }: Prices,
): bigint {
  return gasLimit * maxFee + l1FeeOf(l1Fee, dataBytes)
}

/** Most wei that a plain payment of the coin costs beside its value. */
export function plainFee(prices: Prices): bigint {
  return feeOfCall({ gasLimit: plainGas, data: '0x' }, prices)
}

/** What a transaction in a block cost its account, in wei: its gas, and what an OP Stack network took beside it. */
export function costOf({ gasUsed, effectiveGasPrice, l1Fee }: Receipt): bigint {
  return gasUsed * effectiveGasPrice + l1Fee
}

const attodollarDecimals = 18

/** What gas costs at most, in the smallest unit of a fee token that has these decimals (Tempo: a gas price is in 1e-18 USD); rounded up. */
export function feeInToken(gasLimit: bigint, maxFee: bigint, decimals: number): bigint {
  const unit = 10n ** BigInt(attodollarDecimals - decimals)
  return (gasLimit * maxFee + unit - 1n) / unit
}

/**
 * What a master sends a child so that it can pay for its call: twice what the call costs at most now, since fees may rise until the
 * coin is there, less what the child has; nothing where it has enough. What is left over stays with the child and serves its next call.
 */
export function topUpOf(cost: bigint, available: bigint): bigint {
  if (available >= cost) return 0n
  const short = cost * 2n - available
  return short > 0n ? short : 0n
}

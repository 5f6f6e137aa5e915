import { type Address, formatAmount, type Hex, l1FeeOf, selectorOf } from '@purser/protocol'
import type { OfferedFees } from '../../chain/port.ts'

/** A token or a chain's native coin, with the decimals of its amounts. */
export interface Coin {
  readonly symbol: string
  readonly decimals: number
  /** Undefined for the chain's native coin. */
  readonly address: Address | undefined
}

/** The amount of a coin that a wallet needs, and its available amount (not reserved); in the smallest unit. */
export interface Need {
  readonly coin: Coin
  readonly required: bigint
  readonly available: bigint
  /** Additional amount that waits for the screening of its sender. */
  readonly held?: bigint
}

/** A shortage as a problem record shows it: amounts in whole tokens. */
export interface Shortage {
  readonly token: string
  readonly required: string
  readonly available: string
  /** Omitted if nothing waits for the screening of its sender. */
  readonly held?: string
}

/** Shortages of the needs that are not met; several needs of one coin are added. */
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
 * Gas limit for a call that used this much gas when simulated: a fifth more, since it may execute on another state. A plain payment gets
 * exactly the gas that it used.
 */
export function gasLimitOf(triedGas: bigint): bigint {
  return triedGas === plainGas ? plainGas : (triedGas * 6n) / 5n
}

/** Gas price, and the L1 fee of the network, from which the cost of a transaction is computed. */
export type Prices = Pick<OfferedFees, 'maxFee' | 'l1Fee'>

/** Most wei that a transaction costs in addition to its value: the balance that a node requires. */
export function feeOfCall(
  { gasLimit, data }: { readonly gasLimit: bigint; readonly data: Hex },
  prices: Prices,
): bigint {
  return feeOfGas({ gasLimit, dataBytes: bytesOf(data) }, prices)
}

export function bytesOf(data: Hex): number {
  return data.length / 2 - 1
}

/** As `feeOfCall`, from the number of bytes of call data. */
export function feeOfGas(
  { gasLimit, dataBytes }: { readonly gasLimit: bigint; readonly dataBytes: number },
  { maxFee, l1Fee }: Prices,
): bigint {
  return gasLimit * maxFee + l1FeeOf(l1Fee, dataBytes)
}

/** Most wei that a plain coin payment costs in addition to its value. */
export function plainFee(prices: Prices): bigint {
  return feeOfCall({ gasLimit: plainGas, data: '0x' }, prices)
}

const attodollarDecimals = 18

/** Most that the gas costs, in the smallest unit of a fee token with these decimals (Tempo: a gas price is in 1e-18 USD); rounded up. */
export function feeInToken(gasLimit: bigint, maxFee: bigint, decimals: number): bigint {
  const unit = 10n ** BigInt(attodollarDecimals - decimals)
  return (gasLimit * maxFee + unit - 1n) / unit
}

/**
 * Top-up that a master sends a child for its call: twice the current maximum cost, since fees may rise before the coin arrives, less the
 * child's available coin; zero if it has enough. What remains pays for its next call.
 */
export function topUpOf(cost: bigint, available: bigint): bigint {
  if (available >= cost) return 0n
  const short = cost * 2n - available
  return short > 0n ? short : 0n
}

/** Encodes the query of the amount that a contract may take of an account's tokens. */
export function encodeAllowance(owner: Address, spender: Address): Hex {
  const word = (address: Address): string => address.slice(2).toLowerCase().padStart(64, '0')
  return `${selectorOf('allowance(address,address)')}${word(owner)}${word(spender)}`
}

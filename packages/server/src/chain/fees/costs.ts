import { type Hex, l1FeeOf } from '@purser/protocol'
import type { OfferedFees } from '../port.ts'

/** Gas of a plain payment of the coin to an account without code. */
export const plainGas = 21_000n

/** Gas price, and the L1 fee of the network, from which the cost of a transaction is computed. */
export type Prices = Pick<OfferedFees, 'maxFee' | 'l1Fee'>

/** A call whose gas is to be paid. */
export interface PricedCall {
  readonly gasLimit: bigint
  readonly data: Hex
}

/** Most wei that a transaction costs in addition to its value: the balance that a node requires. */
export function feeOfCall({ gasLimit, data }: PricedCall, prices: Prices): bigint {
  return feeOfGas({ gasLimit, dataBytes: bytesOf(data) }, prices)
}

/** As `feeOfCall`, for several calls together. */
export function feeOfCalls(calls: readonly PricedCall[], prices: Prices): bigint {
  return calls.reduce((sum, call) => sum + feeOfCall(call, prices), 0n)
}

/** The bytes of call data. */
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

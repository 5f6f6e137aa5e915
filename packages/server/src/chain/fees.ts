import type { Network } from '@purser/protocol'

/** What a transaction offers for gas, in wei per unit (EIP-1559). */
export interface Fees {
  readonly maxFee: bigint
  readonly priorityFee: bigint
}

const gwei = 1_000_000_000n
const tipMin = 1_000_000n

/** The most that is ever offered: a node that asks for more, again and again, must not be able to empty the settler. */
export function feeLimits(network: Network): Fees {
  const isCheapCoin = network.nativeCoin?.symbol === 'POL'
  return isCheapCoin
    ? { maxFee: 20_000n * gwei, priorityFee: 1_000n * gwei }
    : { maxFee: 1_000n * gwei, priorityFee: 20n * gwei }
}

/** The most that is counted for 256 bytes on Ethereum, in wei: hundreds of times what they cost when Ethereum is dearest. */
export const l1FeeMax = 10_000_000n * gwei

/** Fees for a first try: room for the base fee to double, and the tip that the node suggests, within the limits. */
export function firstFees(baseFee: bigint, suggestedTip: bigint, limits: Fees): Fees {
  const priorityFee = smaller(larger(suggestedTip, tipMin), limits.priorityFee)
  return { maxFee: smaller(baseFee * 2n + priorityFee, limits.maxFee), priorityFee }
}

/**
 * Fees for a replacement: at least an eighth above the last on both, as nodes ask, and at least what a first try would offer
 * now. `undefined` when that is above the limits: then it waits.
 */
export function replacementFees(last: Fees, fresh: Fees, limits: Fees): Fees | undefined {
  const maxFee = larger(raised(last.maxFee), fresh.maxFee)
  const priorityFee = larger(raised(last.priorityFee), fresh.priorityFee)
  return maxFee > limits.maxFee || priorityFee > limits.priorityFee ? undefined : { maxFee, priorityFee }
}

function raised(fee: bigint): bigint {
  return fee + fee / 8n + 1n
}

function larger(left: bigint, right: bigint): bigint {
  return left > right ? left : right
}

function smaller(left: bigint, right: bigint): bigint {
  return left < right ? left : right
}

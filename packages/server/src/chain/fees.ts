import type { Network } from '@purser/protocol'

/** The fees that a transaction offers, in wei per unit of gas (EIP-1559). */
export interface Fees {
  readonly maxFee: bigint
  readonly priorityFee: bigint
}

const gwei = 1_000_000_000n
const tipMin = 1_000_000n

/** The highest fees ever offered, so that a node that keeps requesting more cannot drain the relayer. */
export function feeLimits(network: Network): Fees {
  const isCheapCoin = network.nativeCoin?.symbol === 'POL'
  return isCheapCoin
    ? { maxFee: 20_000n * gwei, priorityFee: 1_000n * gwei }
    : { maxFee: 1_000n * gwei, priorityFee: 20n * gwei }
}

/** Upper limit on the L1 fee for 256 bytes, in wei: hundreds of times the fee at Ethereum's most expensive. */
export const l1FeeMax = 10_000_000n * gwei

/** Fees for a first attempt: twice the base fee plus the tip that the node suggests, within the limits. */
export function firstFees(baseFee: bigint, suggestedTip: bigint, limits: Fees): Fees {
  const priorityFee = smaller(larger(suggestedTip, tipMin), limits.priorityFee)
  return { maxFee: smaller(baseFee * 2n + priorityFee, limits.maxFee), priorityFee }
}

/**
 * Fees for a replacement: both at least an eighth above the last, as nodes require, and at least those of a first attempt now. Returns undefined
 * when that exceeds the limits; the transaction then waits.
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

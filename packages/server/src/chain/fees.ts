/** What a transaction offers for gas, in wei per unit (EIP-1559). */
export interface Fees {
  readonly maxFee: bigint
  readonly priorityFee: bigint
}

const tipMin = 1_000_000n
const tipMax = 50_000_000_000n

/** Fees for a first try: room for the base fee to double, and the tip that the node suggests, within bounds. */
export function firstFees(baseFee: bigint, suggestedTip: bigint): Fees {
  const priorityFee = suggestedTip < tipMin ? tipMin : suggestedTip > tipMax ? tipMax : suggestedTip
  return { maxFee: baseFee * 2n + priorityFee, priorityFee }
}

/** Fees for a replacement: at least an eighth above the last on both, as nodes ask, and at least what a first try would offer now. */
export function replacementFees(last: Fees, fresh: Fees): Fees {
  const raised = (fee: bigint): bigint => fee + fee / 8n + 1n
  const larger = (left: bigint, right: bigint): bigint => (left > right ? left : right)
  return { maxFee: larger(raised(last.maxFee), fresh.maxFee), priorityFee: larger(raised(last.priorityFee), fresh.priorityFee) }
}

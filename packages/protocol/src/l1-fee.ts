/** The number of transaction bytes that one share of a data fee covers. */
export const l1ShareBytes = 256
/** An unsigned EIP-1559 transaction without its call data and access list has no more, with every number as long as it can be. */
const aroundBytesMax = 128

/**
 * What a network of the OP Stack takes for the bytes of a transaction, in wei: `share` is the most that it takes for 256 unsigned ones
 * (`getL1FeeUpperBound(256)`). Never too little, since the fee grows by less than in proportion: the specifications (Fjord, L1-Cost fees)
 * add to each size the bytes of a signature, and have a minimum.
 *
 * @example
 * l1FeeOf(1_000n, 100) // 1000n
 */
export function l1FeeOf(share: bigint, dataBytes: number): bigint {
  return share * BigInt(Math.ceil((dataBytes + aroundBytesMax) / l1ShareBytes))
}

/** The number of unsigned transaction bytes for which `l1FeeOf` takes the fee. */
export const l1ShareBytes = 256
/**
 * The maximum size in bytes of an unsigned EIP-1559 transaction without call data and access list, when all its
 * integers have their maximum length.
 */
const aroundBytesMax = 128

/**
 * Returns an upper bound of the data fee that an OP Stack network charges for a transaction, in wei. `share` is the upper bound for 256
 * unsigned bytes (`getL1FeeUpperBound(256)`). The bound scales `share` in proportion to the size; the real fee grows more slowly, because
 * the specifications (Fjord, L1-Cost fees) add the bytes of a signature to each size and have a minimum.
 *
 * @example
 * l1FeeOf(1_000n, 100) // 1000n
 */
export function l1FeeOf(share: bigint, dataBytes: number): bigint {
  return share * BigInt(Math.ceil((dataBytes + aroundBytesMax) / l1ShareBytes))
}

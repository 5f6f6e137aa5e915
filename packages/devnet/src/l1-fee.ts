import oracle from './artifacts/TestGasPriceOracle.json' with { type: 'json' }
import type { ReachableChain } from './faucet.ts'
import { rpc } from './rpc.ts'

/** The contract on every network of the OP Stack that returns what a transaction pays beside its gas. */
const gasPriceOracleAddress = '0x420000000000000000000000000000000000000F'
/** The contract with the values from which nodes, and anvil with `--network optimism`, compute that fee. */
const l1BlockAddress = '0x4200000000000000000000000000000000000015'
/** The sender of an `eth_call` without `from`. */
const callerOfReads = '0x0000000000000000000000000000000000000000'

/** Slots of `L1Block` (specifications, predeploys), as op-revm of anvil 1.7.1 reads them. */
const l1BlockSlots = { baseFee: 1, scalars: 3, blobBaseFee: 7, operator: 8 }
const blobScalarOfOne = 1n << 64n
/** A transaction counts as at least 100 bytes. Prices are scaled by 10^12. */
const smallestInPrice = 10_000n

/**
 * From now on every transaction of a chain that was started with `takesL1Fee` pays this many wei beside its gas: `l1`
 * for its bytes, if it is of the smallest size (some 200 bytes of call data; a longer one pays more), and `operator` in
 * any case. The chain's receipts do not include it.
 */
export async function setL1Fee(
  { rpcUrl }: ReachableChain,
  { l1, operator = 0n }: { readonly l1: bigint; readonly operator?: bigint },
): Promise<void> {
  const price = l1 * smallestInPrice
  const set = (address: string, slot: number, value: bigint) =>
    rpc(rpcUrl, 'anvil_setStorageAt', [address, word(BigInt(slot)), word(value)])
  // anvil also charges an eth_call this fee, to the calling account; nodes of such networks do not.
  await rpc(rpcUrl, 'anvil_setBalance', [callerOfReads, word(2n ** 100n)])
  await rpc(rpcUrl, 'anvil_setCode', [gasPriceOracleAddress, oracle.deployedBytecode])
  await set(gasPriceOracleAddress, oracle.slots.scaledPrice, price)
  await set(gasPriceOracleAddress, oracle.slots.operatorFee, operator)
  await set(l1BlockAddress, l1BlockSlots.baseFee, 1n)
  await set(l1BlockAddress, l1BlockSlots.scalars, blobScalarOfOne)
  await set(l1BlockAddress, l1BlockSlots.blobBaseFee, price)
  await set(l1BlockAddress, l1BlockSlots.operator, operator)
}

function word(value: bigint): string {
  return `0x${value.toString(16).padStart(64, '0')}`
}

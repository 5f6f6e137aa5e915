import {
  AbiMalformed,
  type Address,
  bytesToHex,
  type Call3Result,
  decodeAggregate3,
  decodeUint256,
  encodeAggregate3,
  type Hex,
  keccak256,
  l1ShareBytes,
  multicall3Address,
  type Network,
  utf8,
} from '@purser/protocol'
import { encodeWords } from '../../platform/contract-calls.ts'
import { fail } from '../errors.ts'
import { readHex } from '../rpc/read.ts'
import type { RpcCall } from '../rpc/rpc.ts'

/** The fees that a transaction offers, in wei per unit of gas (EIP-1559). */
export interface Fees {
  readonly maxFee: bigint
  readonly priorityFee: bigint
}

const gwei = 1_000_000_000n
const tipMin = 1_000_000n

/** Upper limit on the L1 fee for 256 bytes, in wei: hundreds of times the fee at Ethereum's most expensive. */
const l1FeeMax = 10_000_000n * gwei

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

export function larger(left: bigint, right: bigint): bigint {
  return left > right ? left : right
}

function smaller(left: bigint, right: bigint): bigint {
  return left < right ? left : right
}

const getL1FeeUpperBound = selectorOf('getL1FeeUpperBound(uint256)')
const getOperatorFee = selectorOf('getOperatorFee(uint256)')
const getPricesInWei = selectorOf('getPricesInWei()')
/** Gas for which the operator fee is counted. Our transactions use less. */
const countedGas = 1_000_000n

/** Most gas that 256 bytes take on Arbitrum: more than at Ethereum's most expensive and Arbitrum's lowest base fee. */
const dataGasMax = 100_000_000n

/** Whether the bytes of a transaction take gas from its gas limit before it runs. */
export function takesDataGas({ l1FeeOracle }: Pick<Network, 'l1FeeOracle'>): boolean {
  return l1FeeOracle?.kind === 'nitro'
}

/**
 * Gas of 256 bytes whose L1 fee is this many wei, rounded up. Source: OffchainLabs/nitro, arbos/tx_processor.go, `GasChargingHook`, which divides the
 * cost of the bytes by the base fee.
 */
export function dataGasOf(l1Fee: bigint, baseFee: bigint): bigint {
  const price = larger(baseFee, 1n)
  return smaller((l1Fee + price - 1n) / price, dataGasMax)
}

/**
 * The call that reads the L1 fee per 256 bytes (see `OfferedFees`) from the network's fee oracle. The fee is capped at `l1FeeMax`, so that a node
 * that reports too much cannot make a master wallet send all of its coin to its children. An oracle without code (a local chain) means that there
 * is no such fee. An oracle with code that does not respond is `chain-unavailable`, never a fee of zero.
 */
export function l1FeeCall({ l1FeeOracle }: Pick<Network, 'l1FeeOracle'>): RpcCall | undefined {
  if (l1FeeOracle === null) return undefined
  const questions = l1FeeOracle.kind === 'nitro' ? questionsToNitro : questionsTo
  const call = { to: multicall3Address, data: encodeAggregate3(questions(l1FeeOracle.address)) }
  return { method: 'eth_call', params: [call, 'latest'] }
}

/** Parses the response to `l1FeeCall`, in wei per 256 bytes. */
export function readL1Fee(network: Pick<Network, 'l1FeeOracle'>, result: unknown): bigint {
  const data = readHex(result, 'call result')
  const [share, operator] = takesDataGas(network) ? [readShareOfNitro(data)] : readResponses(data)
  if (share === undefined) throw fail('chain-unavailable', {}, new Error('the fee oracle did not return the data fee'))
  const counted = share * 2n + (operator ?? 0n)
  return counted < l1FeeMax ? counted : l1FeeMax
}

function questionsTo(target: Address) {
  return [
    { target, allowFailure: true, callData: encodeWords(getL1FeeUpperBound, [BigInt(l1ShareBytes)]) },
    // Available since the network's Isthmus upgrade.
    { target, allowFailure: true, callData: encodeWords(getOperatorFee, [countedGas]) },
  ]
}

function questionsToNitro(target: Address) {
  return [{ target, allowFailure: true, callData: getPricesInWei }]
}

function readResponses(data: Hex): readonly (bigint | undefined)[] {
  return responsesIn(data, 2).map(readResponse)
}

/** The second of the six prices is that of a byte on Ethereum. */
function readShareOfNitro(data: Hex): bigint | undefined {
  const [response] = responsesIn(data, 1)
  if (response?.returnData === '0x' && response.success) return 0n
  const price =
    response?.success === true && response.returnData.length === 2 + 6 * 64
      ? response.returnData.slice(66, 130)
      : undefined
  return price === undefined ? undefined : BigInt(`0x${price}`) * BigInt(l1ShareBytes)
}

function responsesIn(data: Hex, count: number): readonly Call3Result[] {
  try {
    return decodeAggregate3(data, count)
  } catch (error) {
    if (error instanceof AbiMalformed) throw fail('chain-unavailable', {}, error)
    throw error
  }
}

/** A call to an account without code succeeds and returns nothing. */
function readResponse({ success, returnData }: Call3Result): bigint | undefined {
  if (!success) return undefined
  return returnData === '0x' ? 0n : decodeUint256(returnData)
}

function selectorOf(signature: string): Hex {
  return bytesToHex(keccak256(utf8(signature)).subarray(0, 4))
}

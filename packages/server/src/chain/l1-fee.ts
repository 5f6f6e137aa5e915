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
import { fail } from './errors.ts'
import { l1FeeMax } from './fees.ts'
import { readHex } from './rpc/read.ts'
import type { RpcCall } from './rpc/rpc.ts'

const getL1FeeUpperBound = selectorOf('getL1FeeUpperBound(uint256)')
const getOperatorFee = selectorOf('getOperatorFee(uint256)')
/** Gas for which the operator fee is counted. Our transactions use less. */
const countedGas = 1_000_000n

/**
 * The call that reads the L1 fee per 256 bytes (see `OfferedFees`) from the network's fee oracle. The fee is capped at `l1FeeMax`, so that a node
 * that reports too much cannot make a master wallet send all of its coin to its children. An oracle without code (a local chain) means that there
 * is no such fee. An oracle with code that does not answer is `chain-unavailable`, never a fee of zero.
 */
export function l1FeeCall({ l1FeeOracle }: Pick<Network, 'l1FeeOracle'>): RpcCall | undefined {
  if (l1FeeOracle === null) return undefined
  const call = { to: multicall3Address, data: encodeAggregate3(questionsTo(l1FeeOracle)) }
  return { method: 'eth_call', params: [call, 'latest'] }
}

/** Parses the answer to `l1FeeCall`, in wei per 256 bytes. */
export function readL1Fee(result: unknown): bigint {
  const [share, operator] = readAnswers(readHex(result, 'call result'))
  if (share === undefined) throw fail('chain-unavailable', {}, new Error('the fee oracle did not return the data fee'))
  const counted = share * 2n + (operator ?? 0n)
  return counted < l1FeeMax ? counted : l1FeeMax
}

function questionsTo(target: Address) {
  return [
    { target, allowFailure: true, callData: withWord(getL1FeeUpperBound, BigInt(l1ShareBytes)) },
    // Available since the network's Isthmus upgrade.
    { target, allowFailure: true, callData: withWord(getOperatorFee, countedGas) },
  ]
}

function readAnswers(data: Hex): readonly (bigint | undefined)[] {
  try {
    return decodeAggregate3(data, 2).map(readAnswer)
  } catch (error) {
    if (error instanceof AbiMalformed) throw fail('chain-unavailable', {}, error)
    throw error
  }
}

/** A call to an account without code succeeds and returns nothing. */
function readAnswer({ success, returnData }: Call3Result): bigint | undefined {
  if (!success) return undefined
  return returnData === '0x' ? 0n : decodeUint256(returnData)
}

function selectorOf(signature: string): Hex {
  return bytesToHex(keccak256(utf8(signature)).subarray(0, 4))
}

function withWord(selector: Hex, value: bigint): Hex {
  return `${selector}${value.toString(16).padStart(64, '0')}`
}

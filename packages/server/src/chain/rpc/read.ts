import { type Address, type Hex, isAddress, isHex } from '@purser/protocol'
import { wordOf } from '../../platform/contract-calls.ts'
import { fail } from '../errors.ts'
import type { Head, Log, Receipt } from '../facts.ts'
import { isRecord, type RpcResponse } from './responses.ts'

/** The problem `chain-unavailable`, for an invalid response of a node. `cause` is for the log. */
export function invalidResponse(cause: string): Error {
  return fail('chain-unavailable', {}, new Error(cause))
}

function invalidShape(what: string): Error {
  return invalidResponse(`the node's ${what} has an invalid shape`)
}

/** The call's result. Throws `chain-unavailable` when there is none. */
export function resultOf(response: RpcResponse | undefined): unknown {
  if (response?.ok !== true) throw invalidResponse(response?.message ?? 'no answer')
  return response.result
}

/** The head from a response to `eth_getBlockByNumber`. The base fee is 0 on a network without EIP-1559. */
export function readHead(block: unknown): Head {
  if (!isRecord(block)) throw invalidResponse('the node has no latest block')
  return {
    number: readQuantity(block.number, 'block number'),
    timestampSeconds: readQuantity(block.timestamp, 'block time'),
    baseFee: readQuantity(block.baseFeePerGas ?? '0x0', 'base fee'),
  }
}

/** A JSON-RPC quantity: `0x` and hexadecimal digits. */
export function readQuantity(value: unknown, what: string): bigint {
  if (typeof value !== 'string' || !/^0x[0-9a-fA-F]{1,64}$/.test(value)) throw invalidShape(what)
  return BigInt(value)
}

export function readHex(value: unknown, what: string): Hex {
  if (typeof value !== 'string' || !isHex(value)) throw invalidShape(what)
  return value
}

/** The requested transaction's receipt; undefined when the node has none. */
export function readReceipt(value: unknown, hash: Hex): Receipt | undefined {
  if (value === null) return undefined
  if (!isRecord(value) || !Array.isArray(value.logs)) throw invalidShape('receipt')
  const transactionHash = readHex(value.transactionHash, 'receipt')
  if (transactionHash.toLowerCase() !== hash.toLowerCase()) throw invalidShape('receipt')
  const status = readQuantity(value.status, 'receipt status')
  return {
    transactionHash,
    blockNumber: readQuantity(value.blockNumber, 'receipt block'),
    blockHash: readHex(value.blockHash, 'receipt block hash'),
    status: status === 1n ? 'success' : 'reverted',
    gasUsed: readQuantity(value.gasUsed, 'receipt gas'),
    effectiveGasPrice: readQuantity(value.effectiveGasPrice ?? '0x0', 'receipt gas price'),
    l1Fee: readQuantity(value.l1Fee ?? '0x0', 'receipt data fee') + operatorFee(value),
    ...dataGasIn(value),
    logs: value.logs.map(readLog),
  }
}

/** The gas of the bytes on Arbitrum. The standard of receipts does not have this field, so a node may leave it out. */
function dataGasIn({ gasUsedForL1 }: Readonly<Record<string, unknown>>): Pick<Receipt, 'dataGas'> {
  if (gasUsedForL1 === undefined || gasUsedForL1 === null) return {}
  return { dataGas: readQuantity(gasUsedForL1, 'receipt gas of the data') }
}

/**
 * The operator fee of an OP Stack network, in wei. op-geth reports its parameters. Since Jovian, whose receipts have a `daFootprintGasScalar`, the
 * fee per gas is 100 times the scalar; before, a millionth of the scalar (OP Stack specifications, Operator fee).
 */
function operatorFee(receipt: Readonly<Record<string, unknown>>): bigint {
  const read = (name: string) => readQuantity(receipt[name] ?? '0x0', 'receipt operator fee')
  if (receipt.operatorFee !== undefined && receipt.operatorFee !== null) return read('operatorFee')
  const scaled = read('gasUsed') * read('operatorFeeScalar')
  const isJovian = receipt.daFootprintGasScalar !== undefined && receipt.daFootprintGasScalar !== null
  return (isJovian ? scaled * 100n : scaled / 1_000_000n) + read('operatorFeeConstant')
}

export function readLog(value: unknown): Log {
  if (
    !isRecord(value) ||
    typeof value.address !== 'string' ||
    !isAddress(value.address) ||
    !Array.isArray(value.topics)
  )
    throw invalidShape('log')
  const topics = value.topics.map((topic) => readHex(topic, 'log topic'))
  return { address: value.address, topics, data: readHex(value.data, 'log data') }
}

/** An account as a topic of a log. */
export function accountTopic(account: Address): Hex {
  return `0x${wordOf(account)}`
}

/** A JSON-RPC quantity: `0x` and hexadecimal digits. */
export function quantity(value: bigint): Hex {
  return `0x${value.toString(16)}`
}

import type { Hex } from '@purser/protocol'
import { isAddress, isHex } from '@purser/protocol'
import { fail } from '../errors.ts'
import type { Log, Receipt } from '../port.ts'
import { isRecord } from './rpc.ts'

/** Thrown inward when a node's answer has not the shape that it must; shown as `chain-unavailable`. */
function lying(what: string): Error {
  return fail('chain-unavailable', {}, new Error(`the node's ${what} has not the shape that it must`))
}

/** A JSON-RPC quantity: `0x` and hexadecimal digits. */
export function readQuantity(value: unknown, what: string): bigint {
  if (typeof value !== 'string' || !/^0x[0-9a-fA-F]{1,64}$/.test(value)) throw lying(what)
  return BigInt(value)
}

export function readHex(value: unknown, what: string): Hex {
  if (typeof value !== 'string' || !isHex(value)) throw lying(what)
  return value
}

/** A receipt of the transaction that was asked for, or undefined when the node has none. */
export function readReceipt(value: unknown, hash: Hex): Receipt | undefined {
  if (value === null) return undefined
  if (!isRecord(value) || !Array.isArray(value.logs)) throw lying('receipt')
  const transactionHash = readHex(value.transactionHash, 'receipt')
  if (transactionHash.toLowerCase() !== hash.toLowerCase()) throw lying('receipt')
  const status = readQuantity(value.status, 'receipt status')
  return {
    transactionHash,
    blockNumber: readQuantity(value.blockNumber, 'receipt block'),
    blockHash: readHex(value.blockHash, 'receipt block hash'),
    status: status === 1n ? 'success' : 'reverted',
    gasUsed: readQuantity(value.gasUsed, 'receipt gas'),
    effectiveGasPrice: readQuantity(value.effectiveGasPrice ?? '0x0', 'receipt gas price'),
    l1Fee: readQuantity(value.l1Fee ?? '0x0', 'receipt data fee') + operatorFee(value),
    logs: value.logs.map(readLog),
  }
}

/**
 * What the operator of an OP Stack network took, in wei. op-geth tells by what it was reckoned: since Jovian, whose receipts have a
 * `daFootprintGasScalar`, a hundredfold of the scalar for each unit of gas, and a millionth of it before (specifications, Operator fee).
 */
function operatorFee(receipt: Readonly<Record<string, unknown>>): bigint {
  const told = (name: string) => readQuantity(receipt[name] ?? '0x0', 'receipt operator fee')
  if (receipt.operatorFee !== undefined && receipt.operatorFee !== null) return told('operatorFee')
  const scaled = told('gasUsed') * told('operatorFeeScalar')
  const isJovian = receipt.daFootprintGasScalar !== undefined && receipt.daFootprintGasScalar !== null
  return (isJovian ? scaled * 100n : scaled / 1_000_000n) + told('operatorFeeConstant')
}

export function readLog(value: unknown): Log {
  if (
    !isRecord(value) ||
    typeof value.address !== 'string' ||
    !isAddress(value.address) ||
    !Array.isArray(value.topics)
  )
    throw lying('log')
  const topics = value.topics.map((topic) => readHex(topic, 'log topic'))
  return { address: value.address, topics, data: readHex(value.data, 'log data') }
}

import { type Address, isAddress } from './address.ts'
import { bytesToHex, type Hex, hexToBytes, isHex } from './bytes.ts'
import type { TransferAuthorization } from './eip712.ts'
import { keccak256 } from './hash.ts'
import { decodeUtf8, utf8 } from './utf8.ts'

/**
 * Thrown when bytes from a node are malformed. The response is not used.
 *
 * @example
 * new AbiMalformed('more than was requested').code // 'abi-malformed'
 */
export class AbiMalformed extends Error {
  override readonly name = 'AbiMalformed'
  readonly code = 'abi-malformed'
}

/** The payer's signature in the form that the token accepts: an ECDSA signature, or bytes for the payer's contract. */
export type TransferSignature =
  | { readonly kind: 'ecdsa'; readonly v: 27 | 28; readonly r: Hex; readonly s: Hex }
  | { readonly kind: 'bytes'; readonly signature: Hex }

/** One call of a Multicall3 batch. */
export type Call3 = { readonly target: Address; readonly allowFailure: boolean; readonly callData: Hex }

/** The result of one call of a Multicall3 batch. */
export type Call3Result = { readonly success: boolean; readonly returnData: Hex }

/** The address of Multicall3 on every supported network. */
export const multicall3Address: Address = '0xcA11bde05977b3631167028862bE2a173976CA11'

const selector = {
  transferVrs: selectorOf(
    'transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)',
  ),
  transferBytes: selectorOf('transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)'),
  authorizationState: selectorOf('authorizationState(address,bytes32)'),
  balanceOf: selectorOf('balanceOf(address)'),
  isSanctioned: selectorOf('isSanctioned(address)'),
  aggregate3: selectorOf('aggregate3((address,bool,bytes)[])'),
  isValidSignature: selectorOf('isValidSignature(bytes32,bytes)'),
  error: selectorOf('Error(string)'),
  panic: selectorOf('Panic(uint256)'),
}

/** Call data without arguments, to read a token's metadata. */
export const tokenReads = {
  name: selectorOf('name()'),
  version: selectorOf('version()'),
  decimals: selectorOf('decimals()'),
  domainSeparator: selectorOf('DOMAIN_SEPARATOR()'),
} as const

const zeros = '0'.repeat(64)
const wordDigits = 64
const [word1, word32, word64, word96, word224] = [sizeWord(1), sizeWord(32), sizeWord(64), sizeWord(96), sizeWord(224)]
const wordsOfV = { 27: sizeWord(27), 28: sizeWord(28) }
const revertReasonBytesMax = 1_024

/**
 * Returns the first four bytes of the Keccak of a function's signature, with which its call data begins (Solidity ABI,
 * "Function selector").
 *
 * @example
 * selectorOf('transfer(address,uint256)') // '0xa9059cbb'
 */
export function selectorOf(signature: string): Hex {
  return bytesToHex(keccak256(utf8(signature)).subarray(0, 4))
}

/**
 * Call data of EIP-3009 `transferWithAuthorization`: the `(v, r, s)` form for an ECDSA signature, which every version of the
 * token has, and the `bytes` form otherwise (FiatToken 2.2, EIP-1271).
 *
 * @example
 * const [from, to] = ['0x857b06519E91e3A54538791bDbb0E22373e36b66', '0x209693Bc6afc0C5328bA36FaF03C514EF312287C']
 * const authorization = { from, to, value: 10_000n, validAfter: 0n, validBefore: 1_740_672_154n, nonce: '0x' + '11'.repeat(32) }
 * const word = '0x' + '22'.repeat(32)
 * encodeTransferWithAuthorization(authorization, { kind: 'ecdsa', v: 27, r: word, s: word }).slice(0, 10) // '0xe3ee160e'
 * encodeTransferWithAuthorization(authorization, { kind: 'bytes', signature: word }).slice(0, 10) // '0xcf092995'
 */
export function encodeTransferWithAuthorization(
  authorization: TransferAuthorization,
  signature: TransferSignature,
): Hex {
  const fields =
    addressWord(authorization.from) +
    addressWord(authorization.to) +
    uintWord(authorization.value) +
    uintWord(authorization.validAfter) +
    uintWord(authorization.validBefore) +
    bytes32Word(authorization.nonce)
  if (signature.kind === 'bytes') return `${selector.transferBytes}${fields}${word224}${bytesTail(signature.signature)}`
  return `${selector.transferVrs}${fields}${wordsOfV[signature.v]}${bytes32Word(signature.r)}${bytes32Word(signature.s)}`
}

/**
 * Call data to query whether an authorization's nonce is used or canceled (EIP-3009).
 *
 * @example
 * encodeAuthorizationState('0x036CbD53842c5426634e7929541eC2318f3dCF7e', '0x' + '00'.repeat(32)).slice(0, 10) // '0xe94a0102'
 */
export function encodeAuthorizationState(authorizer: Address, nonce: Hex): Hex {
  return `${selector.authorizationState}${addressWord(authorizer)}${bytes32Word(nonce)}`
}

const transferSelector = selectorOf('transfer(address,uint256)')

/**
 * Call data of ERC-20 and TIP-20 `transfer`; the amount in the token's smallest unit.
 *
 * @example
 * encodeTransfer('0x036CbD53842c5426634e7929541eC2318f3dCF7e', 1n).length // 138
 */
export function encodeTransfer(to: Address, amount: bigint): Hex {
  return `${transferSelector}${addressWord(to)}${uintWord(amount)}`
}

/**
 * Call data to query an account's balance (ERC-20).
 *
 * @example
 * encodeBalanceOf('0x036CbD53842c5426634e7929541eC2318f3dCF7e') // '0x70a08231000000000000000000000000036cbd53842c5426634e7929541ec2318f3dcf7e'
 */
export function encodeBalanceOf(account: Address): Hex {
  return `${selector.balanceOf}${addressWord(account)}`
}

/**
 * Call data to query Chainalysis' sanctions oracle for an address. The result is a `bool`.
 *
 * @example
 * encodeIsSanctioned('0x036CbD53842c5426634e7929541eC2318f3dCF7e').slice(0, 10) // '0xdf592f7d'
 */
export function encodeIsSanctioned(account: Address): Hex {
  return `${selector.isSanctioned}${addressWord(account)}`
}

/**
 * Call data to check a signature with a contract account (EIP-1271). `0x1626ba7e` means valid.
 *
 * @example
 * encodeIsValidSignature('0x' + '11'.repeat(32), '0x22').slice(0, 10) // '0x1626ba7e'
 */
export function encodeIsValidSignature(hash: Hex, signature: Hex): Hex {
  return `${selector.isValidSignature}${bytes32Word(hash)}${word64}${bytesTail(signature)}`
}

/**
 * Call data of Multicall3 `aggregate3`: many calls in one, each of which may be allowed to fail alone.
 *
 * @example
 * const target = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
 * encodeAggregate3([{ target, allowFailure: true, callData: '0x' }]).slice(0, 10) // '0x82ad56cb'
 */
export function encodeAggregate3(calls: readonly Call3[]): Hex {
  const heads: string[] = []
  const tails: string[] = []
  let tailsAt = calls.length * 32
  for (const call of calls) {
    const bytes = bytesTail(call.callData)
    heads.push(sizeWord(tailsAt))
    tails.push(addressWord(call.target), call.allowFailure ? word1 : zeros, word96, bytes)
    tailsAt += 96 + bytes.length / 2
  }
  return `${selector.aggregate3}${word32}${sizeWord(calls.length)}${heads.join('')}${tails.join('')}`
}

/**
 * Reads the result of `aggregate3`. A node may lie, so the result must contain exactly as many results as calls were
 * made, each laid out where the Solidity compiler puts it, with nothing missing, shared or left over; anything else
 * throws `AbiMalformed`.
 *
 * @example
 * const one = '0x' + uintWord(32n) + uintWord(1n) + uintWord(32n) + uintWord(1n) + uintWord(64n) + uintWord(32n) + uintWord(7n)
 * decodeAggregate3(one, 1).map(({ success, returnData }) => success && decodeUint256(returnData)) // [ 7n ]
 */
export function decodeAggregate3(data: Hex, count: number): readonly Call3Result[] {
  const words = wordsOf(data)
  if (smallUint(words, 0) !== 32 || smallUint(words, 1) !== count) throw new AbiMalformed('not the requested results')
  const results: Call3Result[] = []
  let at = 2 + count
  for (let i = 0; i < count; i++) {
    if (smallUint(words, 2 + i) !== (at - 2) * 32) throw new AbiMalformed('result is not where it must be')
    if (smallUint(words, at + 1) !== 64) throw new AbiMalformed('bytes are not where they must be')
    const { bytes, wordCount } = readBytes(words, at + 2)
    results.push({ success: readBool(words, at), returnData: bytes })
    at += 2 + wordCount
  }
  if (words.length !== at * wordDigits) throw new AbiMalformed('more than was requested')
  return results
}

/**
 * Decodes one `uint256`. Throws `AbiMalformed` unless the data is one word.
 *
 * @example
 * decodeUint256('0x000000000000000000000000000000000000000000000000000000000000002a') // 42n
 */
export function decodeUint256(data: Hex): bigint {
  return BigInt(`0x${oneWord(data)}`)
}

/**
 * Decodes one `bool`. Throws `AbiMalformed` unless the data is one word that is 0 or 1.
 *
 * @example
 * decodeBool('0x0000000000000000000000000000000000000000000000000000000000000001') // true
 */
export function decodeBool(data: Hex): boolean {
  return readBool(oneWord(data), 0)
}

/**
 * Decodes one `bytes32`. Throws `AbiMalformed` unless the data is one word.
 *
 * @example
 * decodeBytes32('0x' + 'ab'.repeat(32)) // '0xabababababababababababababababababababababababababababababababab'
 */
export function decodeBytes32(data: Hex): Hex {
  return `0x${oneWord(data)}`
}

/**
 * Decodes one `string`. Throws `AbiMalformed` if it is truncated, misplaced or not UTF-8.
 *
 * @example
 * decodeString('0x' + uintWord(32n) + uintWord(1n) + '61'.padEnd(64, '0')) // 'a'
 */
export function decodeString(data: Hex): string {
  const words = wordsOf(data)
  if (smallUint(words, 0) !== 32) throw new AbiMalformed('string is not where it must be')
  const text = decodeUtf8(hexToBytes(readBytes(words, 1).bytes))
  if (text === undefined) throw new AbiMalformed('string is not UTF-8')
  return text
}

/**
 * Returns why a call reverted, from its revert data: the text of `Error(string)`, or `Panic(0x11)` with the compiler's
 * code. Returns `undefined` for anything else, and for an `Error` of more than about 1,024 bytes, because the contract
 * chooses the text.
 *
 * @example
 * decodeRevertReason('0x') // undefined
 */
export function decodeRevertReason(data: Hex): string | undefined {
  const body: Hex = `0x${data.slice(10)}`
  try {
    if (data.startsWith(selector.panic)) return `Panic(0x${decodeUint256(body).toString(16)})`
    if (!data.startsWith(selector.error) || data.length > 2 * (revertReasonBytesMax + 100)) return undefined
    return decodeString(body)
  } catch (error) {
    if (error instanceof AbiMalformed) return undefined
    throw error
  }
}

/**
 * Encodes an address as one word of call data, without `0x`. Throws a `RangeError` for a malformed address.
 *
 * @example
 * addressWord('0x036CbD53842c5426634e7929541eC2318f3dCF7e') // '000000000000000000000000036cbd53842c5426634e7929541ec2318f3dcf7e'
 */
export function addressWord(address: Address): string {
  if (!isAddress(address)) throw new RangeError('not an EVM address: expected 0x and 40 hex digits')
  return zeros.slice(0, 24) + address.toLowerCase().slice(2)
}

/**
 * Encodes a `uint256` as one word of call data, without `0x`. Throws a `RangeError` outside 0 to 2^256 - 1.
 *
 * @example
 * uintWord(255n).slice(-4) // '00ff'
 */
export function uintWord(value: bigint): string {
  const digits = value.toString(16)
  if (value < 0n || digits.length > wordDigits) throw new RangeError('not a uint256')
  return digits.padStart(wordDigits, '0')
}

/** Encodes a `bytes32` as one word of call data, without `0x`. Throws a `RangeError` for anything but 32 bytes. */
export function bytes32Word(value: Hex): string {
  if (value.length !== 66 || !isHex(value)) throw new RangeError('not 32 bytes')
  return value.toLowerCase().slice(2)
}

/**
 * Encodes dynamic bytes as the tail of call data, without `0x`: their length, then the bytes, padded to whole words.
 */
export function bytesTail(value: Hex): string {
  if (!isHex(value)) throw new RangeError('not bytes')
  const digits = value.toLowerCase().slice(2)
  const padded = Math.ceil(digits.length / wordDigits) * wordDigits
  return sizeWord(digits.length / 2) + digits.padEnd(padded, '0')
}

/** A count or an offset as one word. */
function sizeWord(value: number): string {
  const digits = value.toString(16)
  return zeros.slice(digits.length) + digits
}

function wordsOf(data: Hex): string {
  if (!isHex(data) || (data.length - 2) % wordDigits !== 0) throw new AbiMalformed('not whole words')
  return data.toLowerCase().slice(2)
}

function oneWord(data: Hex): string {
  const words = wordsOf(data)
  if (words.length !== wordDigits) throw new AbiMalformed('not one word')
  return words
}

const leadingZeros = zeros.slice(0, 56)

/** Reads a length or an offset. Rejects values above 2^32, so that the number is exact. */
function smallUint(words: string, index: number): number {
  const end = (index + 1) * wordDigits
  if (end > words.length) throw new AbiMalformed('cut short')
  if (!words.startsWith(leadingZeros, end - wordDigits)) throw new AbiMalformed('length or offset out of range')
  return Number.parseInt(words.slice(end - 8, end), 16)
}

function readBool(words: string, index: number): boolean {
  const value = smallUint(words, index)
  if (value > 1) throw new AbiMalformed('not a bool')
  return value === 1
}

function readBytes(words: string, index: number): { bytes: Hex; wordCount: number } {
  const size = smallUint(words, index)
  const from = (index + 1) * wordDigits
  const padded = Math.ceil(size / 32)
  if (from + padded * wordDigits > words.length) throw new AbiMalformed('bytes cut short')
  return { bytes: `0x${words.slice(from, from + size * 2)}`, wordCount: 1 + padded }
}

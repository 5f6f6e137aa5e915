import { concatBytes, hexToBytes, isAddress } from '@purser/protocol'
import type { TransactionFields } from '../chain/port.ts'

/** A signature over `unsigned`: 64 bytes (r and s) and the recovery bit. */
interface Signature {
  readonly signature: Uint8Array
  readonly yParity: 0 | 1
}

/** The encodings of one EIP-1559 transaction without an access list. */
export interface Encoded {
  /** The bytes whose keccak-256 is signed. */
  readonly unsigned: Uint8Array
  /** Returns the bytes that are sent; their keccak-256 is the hash of the transaction. */
  signed(signature: Signature): Uint8Array
}

const transactionType = new Uint8Array([0x02])
const emptyList = new Uint8Array([0xc0])
const emptyText = new Uint8Array([0x80])

/**
 * Encodes a transaction. Throws a `RangeError` for fields that no node accepts: a recipient that is no address, a negative number, a number above
 * 2^256 - 1, or a priority fee above the maximum fee. The parts that both encodings have are encoded once. Source: EIP-1559; yellow paper, appendix B.
 */
export function encodeTransaction(fields: TransactionFields): Encoded {
  const { chainId, nonce, maxPriorityFeePerGas, maxFeePerGas, gasLimit, to, value, data } = fields
  if (to !== null && !isAddress(to)) throw new RangeError('the recipient of a transaction is no address')
  if (maxPriorityFeePerGas > maxFeePerGas) throw new RangeError('a priority fee is above the maximum fee')
  const body = concatBytes(
    ...[BigInt(chainId), nonce, maxPriorityFeePerGas, maxFeePerGas, gasLimit].map(integer),
    to === null ? emptyText : text(hexToBytes(to)),
    integer(value),
    text(hexToBytes(data)),
    emptyList,
  )
  return {
    unsigned: concatBytes(transactionType, listHead(body.length), body),
    signed({ signature, yParity }) {
      const [r, s] = [signature.subarray(0, 32), signature.subarray(32, 64)]
      const seal = concatBytes(integer(BigInt(yParity)), text(withoutZeros(r)), text(withoutZeros(s)))
      return concatBytes(transactionType, listHead(body.length + seal.length), body, seal)
    },
  }
}

/** Encodes an integer as its big-endian bytes without leading zeros. */
function integer(value: bigint): Uint8Array {
  if (value < 0n || value >> 256n !== 0n) throw new RangeError('a number of a transaction is out of range')
  if (value === 0n) return emptyText
  const digits = value.toString(16)
  return text(hexToBytes(`0x${digits.length % 2 === 0 ? '' : '0'}${digits}`))
}

/** Encodes bytes: one byte below 0x80 is its own encoding. */
function text(bytes: Uint8Array): Uint8Array {
  if (bytes.length === 1 && (bytes[0] ?? 0) < 0x80) return bytes
  return concatBytes(head(0x80, bytes.length), bytes)
}

function listHead(size: number): Uint8Array {
  return head(0xc0, size)
}

/** The prefix of a text (from 0x80) or of a list (from 0xc0) of this many bytes. */
function head(from: number, size: number): Uint8Array {
  if (size < 56) return new Uint8Array([from + size])
  const digits = size.toString(16)
  const length = hexToBytes(`0x${digits.length % 2 === 0 ? '' : '0'}${digits}`)
  return concatBytes(new Uint8Array([from + 55 + length.length]), length)
}

function withoutZeros(bytes: Uint8Array): Uint8Array {
  const first = bytes.findIndex((byte) => byte !== 0)
  return first < 0 ? new Uint8Array() : bytes.subarray(first)
}

import { type Address, addressOfPublicKey, isAddress } from './address.ts'
import { bytesToHex, type Hex, hexToBytes, isHex, readUint256, uint256ToBytes } from './bytes.ts'
import type { Keccak } from './hash.ts'

/**
 * Public key recovery on secp256k1, supplied by the caller: native on a server, JavaScript in a browser. Takes a
 * 32-byte hash, `r` and `s` in 64 bytes and the parity of R's y. Returns the uncompressed key, 65 bytes, or `undefined`
 * if there is none.
 */
export type Recover = (hash: Uint8Array, signature64: Uint8Array, recovery: 0 | 1) => Uint8Array | undefined

/** An ECDSA signature over secp256k1, as Ethereum writes it in 65 bytes. */
export type EcdsaSignature = {
  readonly kind: 'ecdsa'
  readonly r: Hex
  readonly s: Hex
  readonly v: 27 | 28
  readonly yParity: 0 | 1
  /** `r` and `s` in 64 bytes, as `Recover` takes them. */
  readonly compact: Uint8Array
}

/** Bytes that only the payer's contract can check (EIP-1271). */
export type ContractSignature = { readonly kind: 'contract'; readonly signature: Hex }

/** A signature of an account that need not exist yet, with the call that creates it (EIP-6492). */
export type Eip6492Signature = {
  readonly kind: 'eip6492'
  readonly factory: Address
  readonly factoryCalldata: Hex
  readonly inner: Hex
}

/** The reason why a text is not a signature of any kind. */
export type SignatureFault = 'not-hex' | 'too-long' | 'bad-eip6492'

/** The reason why 65 bytes are not the signature of an ordinary account. A contract account may still accept them. */
export type EcdsaFault = 'bad-v' | 'high-s' | 'out-of-range'

/** The maximum size of a signature, in bytes. Passkey wallets need about 2,000, with the EIP-6492 wrapper. */
export const signatureBytesMax = 8_192

const order = uint256ToBytes(0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n)
const halfOrder = uint256ToBytes(readUint256(order) >> 1n)
const magic = '6492'.repeat(16)
const wordDigits = 64

/**
 * Parses a payer's signature: 65 bytes (`ecdsa`, or `contract` with the fault that rules out an ordinary account), an
 * EIP-6492 wrapper, or other bytes (`contract`). The wrapper is untrusted: its offsets and lengths must stay inside
 * it. A wrapper without a factory is a contract signature, as in the reference implementation. Source: EIP-2 (low s),
 * EIP-1271, EIP-6492 "Signature structure".
 *
 * @example
 * parseSignature('0x' + '11'.repeat(64) + '1b').yParity // 0
 */
export function parseSignature(
  text: string,
): EcdsaSignature | (ContractSignature & { readonly fault?: EcdsaFault }) | Eip6492Signature | SignatureFault {
  if (text.length > 2 + signatureBytesMax * 2) return 'too-long'
  if (!isHex(text)) return 'not-hex'
  if (text.length === 132) {
    const parsed = parseEcdsa(hexToBytes(text))
    return typeof parsed === 'string' ? { kind: 'contract', signature: text, fault: parsed } : parsed
  }
  if (!text.endsWith(magic) || text.length < 2 + wordDigits) return { kind: 'contract', signature: text }
  return parseWrapper(text)
}

/**
 * Parses 65 bytes `r ‖ s ‖ v` by the rules of an ordinary account: v is 27, 28, 0 or 1; r and s are 1 to n - 1; s is at
 * most n / 2, because otherwise anyone could derive a second valid signature from the first.
 *
 * @example
 * const bytes = hexToBytes('0x' + '11'.repeat(64) + '1b')
 * parseEcdsa(bytes).v // 27
 * parseEcdsa(bytes.fill(0xee, 32, 64)) // 'high-s'
 * parseEcdsa(bytes.subarray(1)) // 'out-of-range'
 */
export function parseEcdsa(bytes: Uint8Array): EcdsaSignature | EcdsaFault {
  if (bytes.length !== 65) return 'out-of-range'
  const yParity = parityOf(bytes[64])
  if (yParity === undefined) return 'bad-v'
  if (!isBelowOrder(bytes, 0) || !isBelowOrder(bytes, 32)) return 'out-of-range'
  if (compareWord(bytes, 32, halfOrder) > 0) return 'high-s'
  const compact = bytes.slice(0, 64)
  const digits = bytesToHex(compact)
  return {
    kind: 'ecdsa',
    r: `0x${digits.slice(2, 66)}`,
    s: `0x${digits.slice(66)}`,
    v: yParity === 0 ? 27 : 28,
    yParity,
    compact,
  }
}

const zero = new Uint8Array(32)

/** Whether the number in 32 bytes is from 1 to n - 1. */
function isBelowOrder(bytes: Uint8Array, at: number): boolean {
  return compareWord(bytes, at, zero) > 0 && compareWord(bytes, at, order) < 0
}

/** Compares the number in 32 bytes with another: negative if it is smaller, 0 if they are equal. */
function compareWord(bytes: Uint8Array, at: number, other: Uint8Array): number {
  for (let i = 0; i < 32; i++) {
    const difference = (bytes[at + i] ?? 0) - (other[i] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

/**
 * Returns the account, in lower case, whose key made an ECDSA signature of this hash; `undefined` if no key could have
 * made it.
 *
 * @example
 * const hash = hexToBytes('0x' + '22'.repeat(32))
 * const signature = parseEcdsa(hexToBytes('0x79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798' + '11'.repeat(32) + '1b'))
 * recoverAddress(recover, keccak256, hash, signature) // '0x608c79048713fb8689f1559cc471b03871c97069'
 */
export function recoverAddress(
  recover: Recover,
  keccak: Keccak,
  hash: Uint8Array,
  signature: Pick<EcdsaSignature, 'compact' | 'yParity'>,
): Address | undefined {
  const publicKey = recover(hash, signature.compact, signature.yParity)
  return publicKey === undefined ? undefined : addressOfPublicKey(publicKey, keccak)
}

function parityOf(v: number | undefined): 0 | 1 | undefined {
  if (v === 0 || v === 27) return 0
  if (v === 1 || v === 28) return 1
  return undefined
}

/** `abi.encode(address factory, bytes factoryCalldata, bytes signature)` followed by the magic word. */
function parseWrapper(text: Hex): Eip6492Signature | ContractSignature | SignatureFault {
  const words = text.slice(2, -wordDigits)
  const factory = `0x${words.slice(24, wordDigits)}`
  const factoryCalldata = readBytes(words, 1)
  const inner = readBytes(words, 2)
  if (!isAddress(factory) || !words.startsWith('0'.repeat(24))) return 'bad-eip6492'
  if (factoryCalldata === undefined || inner === undefined) return 'bad-eip6492'
  if (/^0x0{40}$/.test(factory)) return { kind: 'contract', signature: text }
  return { kind: 'eip6492', factory, factoryCalldata, inner }
}

function readBytes(words: string, headIndex: number): Hex | undefined {
  const offset = readSize(words, headIndex * wordDigits)
  if (offset === undefined || offset < 96) return undefined
  const size = readSize(words, offset * 2)
  const from = offset * 2 + wordDigits
  if (size === undefined || from + size * 2 > words.length) return undefined
  return `0x${words.slice(from, from + size * 2)}`
}

function readSize(words: string, at: number): number | undefined {
  const word = words.slice(at, at + wordDigits)
  return word.length === wordDigits && word.startsWith('0'.repeat(56)) ? Number.parseInt(word, 16) : undefined
}

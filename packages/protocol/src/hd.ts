import { hmac } from '@noble/hashes/hmac.js'
import { sha512 } from '@noble/hashes/sha2.js'
import { type Address, addressOfPublicKey, checksumAddress } from './address.ts'
import type { Keccak } from './hash.ts'
import { utf8 } from './utf8.ts'

/**
 * The functions of secp256k1 that derivation needs, supplied by the caller: native on a server, JavaScript in a
 * browser. Tweaks have 32 bytes. The two additions return `undefined` if the tweak is not below the order of the curve,
 * or if the sum is not a valid key. No function keeps or changes its arguments.
 */
export type HdCurve = {
  /** Returns the uncompressed public key, 65 bytes. Throws for 32 bytes that are not a valid private key. */
  readonly publicKeyOf: (privateKey: Uint8Array) => Uint8Array
  /** Returns `point(tweak) + publicKey` as 65 bytes. The public key has 33 or 65 bytes. */
  readonly addToPublicKey: (publicKey: Uint8Array, tweak: Uint8Array) => Uint8Array | undefined
  /** Returns `tweak + privateKey` modulo the order, as a new array of 32 bytes. */
  readonly addToPrivateKey: (privateKey: Uint8Array, tweak: Uint8Array) => Uint8Array | undefined
  /**
   * HMAC-SHA512 of a key and a message, if the caller has a faster one than JavaScript's. Returns a new array of 64
   * bytes.
   */
  readonly hmacSha512?: ((key: Uint8Array, message: Uint8Array) => Uint8Array) | undefined
  readonly keccak?: Keccak | undefined
}

/** An extended public key: 33 bytes of key, 32 of chain code. Derives every child that is not hardened, and no private key. */
export type HdPublicNode = { readonly publicKey: Uint8Array; readonly chainCode: Uint8Array }

/** An extended private key, 32 bytes each. It gives access to all of its children. Wipe it with `wipeHdNode`. */
export type HdPrivateNode = { readonly privateKey: Uint8Array; readonly chainCode: Uint8Array }

/** Indices from this one on are hardened: only a private parent can derive them. */
export const hdHardened = 0x8000_0000

const pathPartsMax = 255
const masterKey = utf8('Bitcoin seed')

/**
 * Parses a path such as `m/44'/60'/0'/0/5`. `'`, `h` and `H` mark a hardened index. Returns the indices from the root
 * on, or `undefined` for any other text, including an index that is out of range. Source: BIP-32, "The key tree".
 *
 * @example
 * parseHdPath("m/44'/60'") // [ 2147483692, 2147483708 ]
 * parseHdPath('m/4294967296') // undefined
 */
export function parseHdPath(text: string): readonly number[] | undefined {
  const [root, ...parts] = text.split('/')
  if (root !== 'm' || parts.length > pathPartsMax) return undefined
  const indices = parts.map(indexOf)
  return indices.every((index) => index !== undefined) ? indices : undefined
}

function indexOf(part: string): number | undefined {
  const [, digits, mark] = /^(0|[1-9]\d{0,9})(['hH]?)$/.exec(part) ?? []
  const index = Number(digits)
  if (digits === undefined || index >= hdHardened) return undefined
  return mark === '' ? index : index + hdHardened
}

/**
 * Returns the path of an account's external chain, whose children are its addresses: `m/44'/60'/account'/0`. Throws a
 * `RangeError` unless the account is an integer from 0 to 2^31 - 1. Source: BIP-44; coin type 60 is Ether's (SLIP-44),
 * which every EVM network shares.
 *
 * @example
 * evmAccountPath(0) // [ 2147483692, 2147483708, 2147483648, 0 ]
 */
export function evmAccountPath(account: number): readonly number[] {
  return [44 + hdHardened, 60 + hdHardened, checked(account, hdHardened) + hdHardened, 0]
}

/**
 * Returns the root node of a seed of 16 to 64 bytes. Throws a `RangeError` for another length, and for the one seed in
 * 2^127 that yields no key. Source: BIP-32, "Master key generation".
 *
 * @example
 * bytesToHex(hdMaster(hexToBytes('0x000102030405060708090a0b0c0d0e0f'), curve).privateKey) // '0xe8f32e723decf4051aefac8e2c93c9c5b214313817cdb01a1494b917c8436b35'
 */
export function hdMaster(seed: Uint8Array, curve: HdCurve): HdPrivateNode {
  if (seed.length < 16 || seed.length > 64) throw new RangeError('a seed is 16 to 64 bytes')
  const made = (curve.hmacSha512 ?? hmacSha512)(masterKey, seed)
  const node = { privateKey: copy(made, 0, 32), chainCode: copy(made, 32, 64) }
  made.fill(0)
  try {
    curve.publicKeyOf(node.privateKey)
    return node
  } catch {
    throw new RangeError('the seed yields no key')
  }
}

/**
 * Returns the extended public key of an extended private key.
 *
 * @example
 * const master = hdMaster(hexToBytes('0x000102030405060708090a0b0c0d0e0f'), curve)
 * bytesToHex(hdPublicOf(master, curve).publicKey) // '0x0339a36013301597daef41fbe593a02cc513d0b55527ec2df1050e2e8ff49c85c2'
 */
export function hdPublicOf(node: HdPrivateNode, curve: HdCurve): HdPublicNode {
  return { publicKey: compress(curve.publicKeyOf(node.privateKey)), chainCode: copy(node.chainCode, 0, 32) }
}

/**
 * Derives the private child at an index, hardened from `hdHardened` on (CKDpriv of BIP-32). Throws a `RangeError` for
 * an invalid index, and for the one index in 2^127 that has no child.
 *
 * @example
 * const master = hdMaster(hexToBytes('0x000102030405060708090a0b0c0d0e0f'), curve)
 * bytesToHex(hdPrivateChild(master, hdHardened, curve).privateKey) // '0xedb2e14f9ee77d26dd93b4ecede8d16ed408ce149b6cd80b0715a2d911a0afea'
 */
export function hdPrivateChild(node: HdPrivateNode, index: number, curve: HdCurve): HdPrivateNode {
  const message = unmoved(37)
  if (index >= hdHardened) message.set(node.privateKey, 1)
  else message.set(compress(curve.publicKeyOf(node.privateKey)))
  const made = expand(node.chainCode, message, index, curve)
  const privateKey = curve.addToPrivateKey(node.privateKey, made.subarray(0, 32))
  const child = privateKey && { privateKey, chainCode: copy(made, 32, 64) }
  message.fill(0)
  made.fill(0)
  if (child === undefined) throw new RangeError('there is no child at this index')
  return child
}

/**
 * Derives the public child at an index that is not hardened (CKDpub of BIP-32). Throws a `RangeError` for a hardened
 * index, which only a private parent can derive, and for the one index in 2^127 that has no child.
 *
 * @example
 * const open = hdPublicOf(hdMaster(hexToBytes('0x000102030405060708090a0b0c0d0e0f'), curve), curve)
 * bytesToHex(hdPublicChild(open, 0, curve).publicKey) // '0x027c4b09ffb985c298afe7e5813266cbfcb7780b480ac294b0b43dc21f2be3d13c'
 */
export function hdPublicChild(node: HdPublicNode, index: number, curve: HdCurve): HdPublicNode {
  const { uncompressed, chainCode } = publicChild(node, index, curve)
  return { publicKey: compress(uncompressed), chainCode }
}

/**
 * Derives the address at an index of an extended public key, with EIP-55 checksum. Throws as `hdPublicChild` does.
 *
 * @example
 * const account = hdPrivatePath(hdMaster(new Uint8Array(16), curve), evmAccountPath(0), curve)
 * hdChildAddress(hdPublicOf(account, curve), 0, curve) // '0xb0e4d189aD9b1a19A4c917be5C8985214ff9ee16'
 */
export function hdChildAddress(node: HdPublicNode, index: number, curve: HdCurve): Address {
  const account = addressOfPublicKey(publicChild(node, index, curve).uncompressed, curve.keccak)
  if (account === undefined) throw new RangeError('the curve returned no public key')
  return checksumAddress(account, curve.keccak)
}

/**
 * Derives the private node at a path. Wipes the nodes in between, but not `node`. Throws as `hdPrivateChild` does.
 *
 * @example
 * const master = hdMaster(hexToBytes('0x000102030405060708090a0b0c0d0e0f'), curve)
 * bytesToHex(hdPrivatePath(master, parseHdPath("m/0'/1"), curve).privateKey) // '0x3c6cb8d0f6a264c91ea8b5030fadaa8e538b020f0a387421a12de9319dc93368'
 */
export function hdPrivatePath(node: HdPrivateNode, path: readonly number[], curve: HdCurve): HdPrivateNode {
  let here: HdPrivateNode = { privateKey: copy(node.privateKey, 0, 32), chainCode: copy(node.chainCode, 0, 32) }
  for (const index of path) {
    const above = here
    try {
      here = hdPrivateChild(above, index, curve)
    } finally {
      wipeHdNode(above)
    }
  }
  return here
}

/**
 * Overwrites the key and the chain code with zeros.
 *
 * @example
 * const node = hdMaster(new Uint8Array(16), curve)
 * wipeHdNode(node)
 * node.privateKey.every((byte) => byte === 0) // true
 */
export function wipeHdNode(node: HdPrivateNode): void {
  node.privateKey.fill(0)
  node.chainCode.fill(0)
}

function publicChild(node: HdPublicNode, index: number, curve: HdCurve) {
  if (node.publicKey.length !== 33 || node.chainCode.length !== 32) throw new RangeError('not an extended public key')
  const message = new Uint8Array(37)
  message.set(node.publicKey)
  const made = expand(node.chainCode, message, checked(index, hdHardened), curve)
  const uncompressed = curve.addToPublicKey(node.publicKey, made.subarray(0, 32))
  if (uncompressed === undefined) throw new RangeError('there is no child at this index')
  return { uncompressed, chainCode: copy(made, 32, 64) }
}

/** Returns the 64 bytes `I` of BIP-32, split into the tweak and the child's chain code. */
function expand(chainCode: Uint8Array, message: Uint8Array, index: number, curve: HdCurve): Uint8Array {
  new DataView(message.buffer).setUint32(33, checked(index, 2 * hdHardened))
  return (curve.hmacSha512 ?? hmacSha512)(chainCode, message)
}

function hmacSha512(key: Uint8Array, message: Uint8Array): Uint8Array {
  return hmac(sha512, key, message)
}

/** Returns the compressed point: the parity of y, then x (SEC 1, section 2.3.3). */
function compress(uncompressed: Uint8Array): Uint8Array {
  const compressed = copy(uncompressed, 0, 33)
  compressed[0] = 2 + ((uncompressed[64] ?? 0) & 1)
  return compressed
}

/** Not `slice`: on a Node Buffer it returns the same memory, which is wiped with the original. */
function copy(bytes: Uint8Array, from: number, to: number): Uint8Array {
  const copied = unmoved(to - from)
  copied.set(bytes.subarray(from, to))
  return copied
}

/**
 * Bytes that the garbage collector does not move. It moves small arrays without their own buffer, and the old copy
 * cannot be wiped.
 */
function unmoved(size: number): Uint8Array {
  return new Uint8Array(new ArrayBuffer(size))
}

function checked(index: number, below: number): number {
  if (!Number.isInteger(index) || index < 0 || index >= below)
    throw new RangeError(`the index must be an integer from 0 to ${below - 1}`)
  return index
}

import { hmac } from '@noble/hashes/hmac.js'
import { sha512 } from '@noble/hashes/sha2.js'
import { type Address, addressOfPublicKey, checksumAddress } from './address.ts'
import type { Keccak } from './hash.ts'
import { utf8 } from './utf8.ts'

/**
 * secp256k1 as derivation needs it, supplied by the caller: native on a server, JavaScript in a browser. Tweaks are
 * 32 bytes. The sums answer `undefined` when the tweak is not below the curve's order or the sum is nothing. No
 * function keeps or changes what it is given.
 */
export type HdCurve = {
  /** The 65 bytes of the uncompressed public key. Throws for 32 bytes that are no key. */
  readonly publicKeyOf: (privateKey: Uint8Array) => Uint8Array
  /** `point(tweak) + publicKey` in 65 bytes, of a key in 33 or 65. */
  readonly addToPublicKey: (publicKey: Uint8Array, tweak: Uint8Array) => Uint8Array | undefined
  /** `tweak + privateKey` modulo the order, in 32 bytes of its own. */
  readonly addToPrivateKey: (privateKey: Uint8Array, tweak: Uint8Array) => Uint8Array | undefined
  /** A faster HMAC-SHA512 than the one in JavaScript: key, then message; answers 64 bytes of its own. */
  readonly hmacSha512?: ((key: Uint8Array, message: Uint8Array) => Uint8Array) | undefined
  readonly keccak?: Keccak | undefined
}

/** An extended public key: 33 bytes of key, 32 of chain code. Derives every child that is not hardened, and no private key. */
export type HdPublicNode = { readonly publicKey: Uint8Array; readonly chainCode: Uint8Array }

/** An extended private key, 32 bytes each. It gives access to all of its children. Wipe it with `wipeHdNode`. */
export type HdPrivateNode = { readonly privateKey: Uint8Array; readonly chainCode: Uint8Array }

/** Indices from here on are hardened: only the private parent derives them. */
export const hdHardened = 0x8000_0000

const pathPartsMax = 255
const masterKey = utf8('Bitcoin seed')

/**
 * Reads a path such as `m/44'/60'/0'/0/5`; `'`, `h` and `H` mark a hardened part. Answers the indices from the top,
 * `undefined` for anything else: an index that is out of range must not become another one.
 * Source: BIP-32, "The key tree".
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
 * The path of an account's external chain, whose children are its addresses: `m/44'/60'/account'/0`. Throws a `RangeError` for an
 * account that is no index. Source: BIP-44; coin type 60 is Ether's (SLIP-44), which every EVM network shares.
 *
 * @example
 * evmAccountPath(0) // [ 2147483692, 2147483708, 2147483648, 0 ]
 */
export function evmAccountPath(account: number): readonly number[] {
  return [44 + hdHardened, 60 + hdHardened, checked(account, hdHardened) + hdHardened, 0]
}

/**
 * The root node of a seed of 16 to 64 bytes. Throws a `RangeError` for another length, and for the one seed in 2^127
 * that yields no key. Source: BIP-32, "Master key generation".
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

/** The extended public key of an extended private one. */
export function hdPublicOf(node: HdPrivateNode, curve: HdCurve): HdPublicNode {
  return { publicKey: compress(curve.publicKeyOf(node.privateKey)), chainCode: copy(node.chainCode, 0, 32) }
}

/**
 * CKDpriv of BIP-32: the private child at an index, hardened from `hdHardened` on. Throws a `RangeError` for what is no index, and
 * for the one index in 2^127 that has no child.
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
 * CKDpub of BIP-32: the public child at an index that is not hardened. Throws a `RangeError` for a hardened index, which only the
 * private parent derives, and for the one index in 2^127 that has no child.
 */
export function hdPublicChild(node: HdPublicNode, index: number, curve: HdCurve): HdPublicNode {
  const { uncompressed, chainCode } = publicChild(node, index, curve)
  return { publicKey: compress(uncompressed), chainCode }
}

/** The address at an index of an extended public key, with EIP-55 checksum. Throws as `hdPublicChild` does. */
export function hdChildAddress(node: HdPublicNode, index: number, curve: HdCurve): Address {
  const account = addressOfPublicKey(publicChild(node, index, curve).uncompressed, curve.keccak)
  if (account === undefined) throw new RangeError('the curve answered no public key')
  return checksumAddress(account, curve.keccak)
}

/** The private node at the end of a path; those between are wiped, the one that was given is not. Throws as `hdPrivateChild` does. */
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

/** Overwrites the key and the chain code with zeros. */
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

/** I of BIP-32: the tweak in its first half, the child's chain code in its second. */
function expand(chainCode: Uint8Array, message: Uint8Array, index: number, curve: HdCurve): Uint8Array {
  new DataView(message.buffer).setUint32(33, checked(index, 2 * hdHardened))
  return (curve.hmacSha512 ?? hmacSha512)(chainCode, message)
}

function hmacSha512(key: Uint8Array, message: Uint8Array): Uint8Array {
  return hmac(sha512, key, message)
}

/** SEC 1, section 2.3.3: the parity of y, then x. */
function compress(uncompressed: Uint8Array): Uint8Array {
  const compressed = copy(uncompressed, 0, 33)
  compressed[0] = 2 + ((uncompressed[64] ?? 0) & 1)
  return compressed
}

/** Not `slice`, which on Node's Buffer answers the same memory, wiped with the original. */
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
  if (!Number.isInteger(index) || index < 0 || index >= below) throw new RangeError('not an index')
  return index
}

import { concatBytes, equalBytes } from './bytes.ts'
import { sha256 } from './hash.ts'

/** The maximum number of leaves of a tree. */
export const merkleLeavesMax = 1_048_576

const hashBytes = 32
const leafPrefix = Uint8Array.of(0x00)
const nodePrefix = Uint8Array.of(0x01)

/**
 * The proof that a leaf is at `index` (from 0) of a tree of `treeSize` leaves: the sibling hashes on its path, lowest
 * first.
 */
export type MerkleInclusion = {
  readonly leafHash: Uint8Array
  readonly index: number
  readonly treeSize: number
  readonly path: readonly Uint8Array[]
}

/**
 * Returns the hash of a leaf: SHA-256 of a zero byte and the entry. Because of the zero byte, a leaf cannot be
 * presented as an inner node. Source: RFC 6962 section 2.1.
 *
 * @example
 * bytesToHex(merkleLeafHash(new Uint8Array())) // '0x6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d'
 */
export function merkleLeafHash(entry: Uint8Array): Uint8Array {
  return sha256(concatBytes(leafPrefix, entry))
}

/**
 * Returns the root of a tree from the hashes of its leaves (`merkleLeafHash`), in this order. The root of no leaves is
 * the SHA-256 of no bytes. Throws a `RangeError` for a hash that is not 32 bytes and for more than `merkleLeavesMax`
 * leaves. Source: RFC 6962 section 2.1, Merkle Tree Hash.
 *
 * @example
 * bytesToHex(merkleRoot([merkleLeafHash(utf8('a')), merkleLeafHash(utf8('b'))])) // '0xb137985ff484fb600db93107c77b0365c80d78f5b429ded0fd97361d077999eb'
 */
export function merkleRoot(leafHashes: readonly Uint8Array[]): Uint8Array {
  demandLeaves(leafHashes)
  return leafHashes.length === 0 ? sha256(new Uint8Array()) : subtreeRoot(leafHashes, 0, leafHashes.length)
}

/**
 * Returns the audit path of the leaf at `index` (from 0), lowest hash first. Throws a `RangeError` if there is no such
 * leaf, and as `merkleRoot` does. Source: RFC 6962 section 2.1.1.
 *
 * @example
 * merklePath([merkleLeafHash(utf8('a')), merkleLeafHash(utf8('b'))], 1).length // 1
 */
export function merklePath(leafHashes: readonly Uint8Array[], index: number): Uint8Array[] {
  demandLeaves(leafHashes)
  if (!Number.isInteger(index) || index < 0 || index >= leafHashes.length) throw new RangeError('no leaf at that index')
  const downward: Uint8Array[] = []
  let start = 0
  let end = leafHashes.length
  while (end - start > 1) {
    const middle = start + largestPowerBelow(end - start)
    const isLeft = index < middle
    downward.push(isLeft ? subtreeRoot(leafHashes, middle, end) : subtreeRoot(leafHashes, start, middle))
    if (isLeft) end = middle
    else start = middle
  }
  return downward.reverse()
}

/**
 * Returns the level above these nodes: the hash of each pair, and an unpaired last node unchanged. Repeated from the leaves up to one
 * node, it yields the tree of `merkleRoot`. A level may be computed in parts of even length, so that a caller with other work need not
 * hash a large tree in one step. Input and output are concatenated nodes of 32 bytes.
 * Source: RFC 9162 section 2.1.2, which builds the trees of RFC 6962 from below.
 *
 * @example
 * const leaves = ['a', 'b'].map((text) => merkleLeafHash(utf8(text)))
 * equalBytes(merkleParents(concatBytes(...leaves)), merkleRoot(leaves)) // true
 */
export function merkleParents(nodes: Uint8Array): Uint8Array {
  if (nodes.length % hashBytes !== 0) throw new RangeError('a node is 32 bytes')
  const parents = new Uint8Array(Math.ceil(nodes.length / hashBytes / 2) * hashBytes)
  for (let at = 0; at < nodes.length; at += 2 * hashBytes) {
    const left = nodes.subarray(at, at + hashBytes)
    const right = nodes.subarray(at + hashBytes, at + 2 * hashBytes)
    parents.set(right.length === 0 ? left : nodeHash(left, right), at / 2)
  }
  return parents
}

/**
 * The positions of a leaf's audit path among all nodes of the tree, from 0, lowest hash first. The leaves come first,
 * then each level of `merkleParents`. Throws a `RangeError` if there is no leaf at `index`.
 *
 * @example
 * merklePathPlaces(4, 2) // [ 3, 4 ]
 */
export function merklePathPlaces(treeSize: number, index: number): number[] {
  if (!isCount(treeSize) || !isCount(index) || index >= treeSize) throw new RangeError('no leaf at that index')
  const places: number[] = []
  let [levelStart, width, at] = [0, treeSize, index]
  while (width > 1) {
    const beside = at % 2 === 0 ? at + 1 : at - 1
    if (beside < width) places.push(levelStart + beside)
    levelStart += width
    width = Math.ceil(width / 2)
    at = Math.floor(at / 2)
  }
  return places
}

/**
 * Whether the leaf is in the tree that has this root. An index or size out of bounds, a path of the wrong length and
 * a hash that is not 32 bytes return false. The result is only as trustworthy as the root. An adjacent size can pass
 * with the same path, so root and size must both come from a signed statement. Source: RFC 9162 section 2.1.3.2,
 * which states the check for the trees of RFC 6962.
 *
 * @example
 * const leaf = merkleLeafHash(new Uint8Array([1]))
 * isMerkleIncluded({ leafHash: leaf, index: 0, treeSize: 1, path: [] }, leaf) // true
 */
export function isMerkleIncluded({ leafHash, index, treeSize, path }: MerkleInclusion, root: Uint8Array): boolean {
  if (!isCount(treeSize) || !isCount(index) || index >= treeSize) return false
  if ([leafHash, root, ...path].some(({ length }) => length !== hashBytes)) return false
  let hash = leafHash
  let at = index
  let last = treeSize - 1
  for (const beside of path) {
    if (last === 0) return false
    if (at % 2 === 1 || at === last) {
      hash = nodeHash(beside, hash)
      while (at % 2 === 0 && at !== 0) [at, last] = [at >>> 1, last >>> 1]
    } else {
      hash = nodeHash(hash, beside)
    }
    at >>>= 1
    last >>>= 1
  }
  return last === 0 && equalBytes(hash, root)
}

function isCount(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= merkleLeavesMax
}

function demandLeaves(leafHashes: readonly Uint8Array[]): void {
  if (leafHashes.length > merkleLeavesMax) throw new RangeError('too many leaves')
  if (leafHashes.some(({ length }) => length !== hashBytes)) throw new RangeError('a leaf hash is 32 bytes')
}

function subtreeRoot(leafHashes: readonly Uint8Array[], start: number, end: number): Uint8Array {
  const only = leafHashes[start]
  if (only === undefined) throw new RangeError('no leaf at that index')
  if (end - start === 1) return only
  const middle = start + largestPowerBelow(end - start)
  return nodeHash(subtreeRoot(leafHashes, start, middle), subtreeRoot(leafHashes, middle, end))
}

/** The largest power of two that is smaller than a count of two or more. */
function largestPowerBelow(count: number): number {
  return 2 ** (31 - Math.clz32(count - 1))
}

function nodeHash(left: Uint8Array, right: Uint8Array): Uint8Array {
  return sha256(concatBytes(nodePrefix, left, right))
}

import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bytesToHex, hexToBytes } from './bytes.ts'
import {
  isMerkleIncluded,
  merkleLeafHash,
  merkleLeavesMax,
  merkleParents,
  merklePath,
  merklePathPlaces,
  merkleRoot,
} from './merkle.ts'
import vectors from './vectors/merkle.json' with { type: 'json' }

const bytes = (hex: string): Uint8Array => hexToBytes(`0x${hex}`)
const hex = (of: Uint8Array): string => bytesToHex(of).slice(2)
const leafHashes = vectors.leaves.map((leaf) => merkleLeafHash(bytes(leaf)))

test('the roots of the Certificate Transparency reference come out for every size from 0 to 8', () => {
  expect(vectors.roots).toHaveLength(9)
  for (const [size, root] of vectors.roots.entries()) expect(hex(merkleRoot(leafHashes.slice(0, size)))).toBe(root)
})

test('the hashes of every complete subtree are those of the reference', () => {
  for (const [level, hashes] of vectors.levels.entries()) {
    const width = 2 ** level
    for (const [index, hash] of hashes.entries())
      expect(hex(merkleRoot(leafHashes.slice(index * width, (index + 1) * width)))).toBe(hash)
  }
})

test('the audit paths of the example tree of RFC 6962 section 2.1.3 come out with its nodes in its order', () => {
  const [leaves = [], pairs = [], fours = []] = vectors.levels
  const [a, b, c, d, e, f, j] = leaves
  const l = createHash('sha256')
    .update(bytes(`01${pairs[2]}${j}`))
    .digest('hex')
  const named: Record<string, string | undefined> = {
    a,
    b,
    c,
    d,
    e,
    f,
    g: pairs[0],
    h: pairs[1],
    i: pairs[2],
    j,
    k: fours[0],
    l,
  }
  for (const { index, path } of vectors.examplePaths)
    expect(merklePath(leafHashes.slice(0, 7), index).map(hex)).toEqual(path.map((name) => named[name]))
})

test.each(vectors.inclusion)('the reference and this check agree on $name', (vector) => {
  const { leafHash, index, treeSize, root, path, included } = vector
  expect(isMerkleIncluded({ leafHash: bytes(leafHash), index, treeSize, path: path.map(bytes) }, bytes(root))).toBe(
    included,
  )
})

test('the reference has proofs that hold, and they are the ones made here', () => {
  const holding = vectors.inclusion.filter(({ included }) => included)
  expect(holding.length).toBeGreaterThan(4)
  const ofReferenceTree = holding.filter(({ treeSize, root }) => vectors.roots[treeSize] === root)
  expect(ofReferenceTree.length).toBeGreaterThan(4)
  for (const { index, treeSize, path } of ofReferenceTree)
    expect(merklePath(leafHashes.slice(0, treeSize), index).map(hex)).toEqual(path)
})

/** Up to 300 different leaves. */
const trees = fc
  .integer({ min: 1, max: 300 })
  .chain((size) => fc.tuple(fc.constant(size), fc.integer({ min: 0, max: 0xffff_ffff })))
  .map(([size, salt]) =>
    Array.from({ length: size }, (_, index) => merkleLeafHash(bytes(number8(salt) + number8(index)))),
  )

function number8(value: number): string {
  return value.toString(16).padStart(8, '0')
}

test('in any tree of up to 300 leaves, the proof of every leaf holds', () => {
  fc.assert(
    fc.property(trees, (tree) => {
      const root = merkleRoot(tree)
      for (const [index, leafHash] of tree.entries()) {
        const path = merklePath(tree, index)
        expect(path.length).toBeLessThanOrEqual(Math.ceil(Math.log2(tree.length)))
        expect(isMerkleIncluded({ leafHash, index, treeSize: tree.length, path }, root)).toBe(true)
      }
    }),
    { numRuns: 10 },
  )
})

test('every size from 0 to 300 has a root of its own, and every proof in each of them holds', () => {
  const all = Array.from({ length: 300 }, (_, index) => merkleLeafHash(bytes(number8(index))))
  const roots = new Set<string>()
  for (let size = 0; size <= all.length; size++) roots.add(hex(merkleRoot(all.slice(0, size))))
  expect(roots.size).toBe(301)
})

test('no proof holds after one bit of its leaf, of its path or of the root has changed', () => {
  fc.assert(
    fc.property(trees, fc.nat(), fc.nat(), fc.integer({ min: 0, max: 255 }), (tree, at, which, bit) => {
      const index = at % tree.length
      const leafHash = tree[index] ?? new Uint8Array()
      const hashes = [leafHash, merkleRoot(tree), ...merklePath(tree, index)]
      const changed = hashes.map((hash, place) => (place === which % hashes.length ? withBitFlipped(hash, bit) : hash))
      const [leaf = new Uint8Array(), root = new Uint8Array(), ...path] = changed
      expect(isMerkleIncluded({ leafHash: leaf, index, treeSize: tree.length, path }, root)).toBe(false)
    }),
    { numRuns: 500 },
  )
})

test('no proof holds at another index', () => {
  fc.assert(
    fc.property(trees, fc.nat(), (tree, at) => {
      const index = at % tree.length
      const leafHash = tree[index] ?? new Uint8Array()
      const [root, path, treeSize] = [merkleRoot(tree), merklePath(tree, index), tree.length]
      const others = [-1, 0.5, Number.NaN, ...Array.from({ length: treeSize + 2 }, (_, other) => other)]
      for (const other of others.filter((other) => other !== index))
        expect(isMerkleIncluded({ leafHash, index: other, treeSize, path }, root)).toBe(false)
    }),
    { numRuns: 50 },
  )
})

test('a proof holds at another size only where the way up takes the same turns, so the size must be signed as the root is', () => {
  const all = Array.from({ length: 17 }, (_, index) => merkleLeafHash(bytes(number8(index))))
  const neighbours: string[] = []
  for (const { index, treeSize } of placesUpTo(17)) {
    const tree = all.slice(0, treeSize)
    const leafHash = tree[index] ?? new Uint8Array()
    const [root, path] = [merkleRoot(tree), merklePath(tree, index)]
    for (const claimed of placesUpTo(34)) {
      const holds = isMerkleIncluded({ leafHash, path, ...claimed }, root)
      const place = `${index} of ${treeSize} as ${claimed.index} of ${claimed.treeSize}`
      expect(holds, place).toBe(turns(claimed) === turns({ index, treeSize }))
      if (holds && claimed.treeSize !== treeSize) neighbours.push(place)
    }
    for (const outside of [-1, 0, 0.5, merkleLeavesMax + 1, Number.POSITIVE_INFINITY])
      expect(isMerkleIncluded({ leafHash, index, treeSize: outside, path }, root)).toBe(false)
  }
  expect(neighbours).toContain('0 of 3 as 0 of 4')
})

test('no proof holds with a hash too many or too few, at either end', () => {
  fc.assert(
    fc.property(trees, fc.nat(), (tree, at) => {
      const index = at % tree.length
      const leafHash = tree[index] ?? new Uint8Array()
      const [root, path, treeSize] = [merkleRoot(tree), merklePath(tree, index), tree.length]
      const spoiled = [
        [root, ...path],
        [...path, root],
        [leafHash, ...path],
        [...path, leafHash],
      ]
      if (path.length > 0) spoiled.push(path.slice(1), path.slice(0, -1))
      for (const other of spoiled)
        expect(isMerkleIncluded({ leafHash, index, treeSize, path: other }, root)).toBe(false)
    }),
    { numRuns: 100 },
  )
})

test('an inner node does not pass for a leaf', () => {
  const [left = new Uint8Array(), right = new Uint8Array()] = leafHashes
  const joined = new Uint8Array([...left, ...right])
  expect(hex(merkleLeafHash(joined))).not.toBe(hex(merkleRoot([left, right])))
})

test('entries in place of leaf hashes, an index without a leaf and a tree out of bounds are refused', () => {
  expect(() => merkleRoot([bytes('00')])).toThrow(RangeError)
  for (const index of [-1, 8, 0.5, Number.NaN]) expect(() => merklePath(leafHashes, index)).toThrow(RangeError)
  expect(() => merklePath([], 0)).toThrow(RangeError)
  const endless = new Array<Uint8Array>(merkleLeavesMax + 1).fill(leafHashes[0] ?? new Uint8Array())
  expect(() => merkleRoot(endless)).toThrow('too many leaves')
})

interface Place {
  readonly index: number
  readonly treeSize: number
}

/** Every place in every tree of up to so many leaves. */
function placesUpTo(treeSizeMax: number): Place[] {
  return Array.from({ length: treeSizeMax }, (_, at) => at + 1).flatMap((treeSize) =>
    Array.from({ length: treeSize }, (_, index) => ({ index, treeSize })),
  )
}

/** The turns of a leaf's way up, from the definition in section 2.1.1 and not from the check's arithmetic. */
function turns({ index, treeSize }: Place): string {
  if (treeSize <= 1) return ''
  let split = 1
  while (split * 2 < treeSize) split *= 2
  if (index < split) return `${turns({ index, treeSize: split })}L`
  return `${turns({ index: index - split, treeSize: treeSize - split })}R`
}

function withBitFlipped(hash: Uint8Array, bit: number): Uint8Array {
  const changed = Uint8Array.from(hash)
  changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
  return changed
}

/** The levels of a tree from the leaves up, each made in parts of so many nodes. */
function levelsOf(leaves: readonly Uint8Array[], nodesOfPart: number): Uint8Array[] {
  const levels = [new Uint8Array(Buffer.concat(leaves))]
  for (let level = levels[0]; level !== undefined && level.length > 32; level = levels.at(-1)) {
    const parts: Uint8Array[] = []
    for (let at = 0; at < level.length; at += 32 * nodesOfPart)
      parts.push(merkleParents(level.subarray(at, at + 32 * nodesOfPart)))
    levels.push(new Uint8Array(Buffer.concat(parts)))
  }
  return levels
}

test('a tree that is made level by level, in parts, has the root and at the places named the audit paths of one made at once', () => {
  const leaves = Array.from({ length: 70 }, (_, index) => merkleLeafHash(Uint8Array.of(index)))
  for (let treeSize = 1; treeSize <= leaves.length; treeSize++) {
    const some = leaves.slice(0, treeSize)
    const levels = levelsOf(some, 6)
    expect(hex(levels.at(-1) ?? new Uint8Array())).toBe(hex(merkleRoot(some)))
    const nodes = Buffer.concat(levels)
    for (let index = 0; index < treeSize; index++) {
      const path = merklePathPlaces(treeSize, index).map((place) => nodes.subarray(place * 32, place * 32 + 32))
      expect(path.map(hex)).toEqual(merklePath(some, index).map(hex))
    }
  }
})

test('what is no leaf of a tree has no place in it, and what is no row of nodes no parents', () => {
  for (const [treeSize, index] of [
    [0, 0],
    [5, 5],
    [5, -1],
    [5, 1.5],
    [merkleLeavesMax + 1, 0],
  ] as const)
    expect(() => merklePathPlaces(treeSize, index)).toThrow(RangeError)
  expect(() => merkleParents(new Uint8Array(33))).toThrow(RangeError)
})

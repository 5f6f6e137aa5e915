import { createHash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { itemLeafHash, merkleParents, type SealedItem } from '@purser/protocol'

const hashBytes = 32
/** Hashes per turn of the event loop: a few milliseconds. */
const hashesPerTurn = 1_000

/** A seal's Merkle tree: all nodes of 32 bytes, the leaves first and then each level above them; and its root in hex. */
export interface SealTree {
  readonly nodes: Uint8Array
  readonly root: string
}

/**
 * Returns the tree over a manifest's items in their order. It yields to the event loop, so that a vault of 100,000 items blocks
 * no other request. Without items there is no node, and the root is the hash of nothing. Source: RFC 6962 section 2.1.
 */
export async function sealTreeOf(items: readonly SealedItem[]): Promise<SealTree> {
  if (items.length === 0) return { nodes: new Uint8Array(), root: createHash('sha256').digest('hex') }
  const levels = [await leavesOf(items)]
  for (let level = levels[0]; level !== undefined && level.length > hashBytes; level = levels.at(-1))
    levels.push(await parentsOf(level))
  return { nodes: Buffer.concat(levels), root: Buffer.from(levels.at(-1) ?? []).toString('hex') }
}

async function leavesOf(items: readonly SealedItem[]): Promise<Uint8Array> {
  const leaves = new Uint8Array(items.length * hashBytes)
  for (const [index, item] of items.entries()) {
    leaves.set(itemLeafHash(item), index * hashBytes)
    if (index % hashesPerTurn === hashesPerTurn - 1) await nextTurn()
  }
  return leaves
}

async function parentsOf(level: Uint8Array): Promise<Uint8Array> {
  const partBytes = 2 * hashesPerTurn * hashBytes
  const parts: Uint8Array[] = []
  for (let at = 0; at < level.length; at += partBytes) {
    parts.push(merkleParents(level.subarray(at, at + partBytes)))
    await nextTurn()
  }
  return Buffer.concat(parts)
}

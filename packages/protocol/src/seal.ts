import { bytesToHex, hexToBytes } from './bytes.ts'
import { canonicalJson } from './canonical-json.ts'
import { sha256 } from './hash.ts'
import { merkleLeafHash, merklePath, merkleRoot } from './merkle.ts'
import type { ItemProof, SealedItem, SealManifest, SealProof, SealStatement } from './seal-parse.ts'
import { readManifest } from './seal-parse.ts'
import { utf8 } from './utf8.ts'
import type { JsonObject } from './x402/messages.ts'

/** The input of a manifest. Items are in any order. */
export type SealFacts = Omit<SealManifest, 'version'>

/**
 * Returns the content of a document, of which the manifest has the size and hash: its data as canonical JSON. Throws as
 * `canonicalJson`.
 *
 * @example
 * new TextDecoder().decode(documentContent({ b: 1, a: true })) // '{"a":true,"b":1}'
 */
export function documentContent(data: JsonObject): Uint8Array {
  return utf8(canonicalJson(data))
}

/**
 * Builds a manifest: sorts the items and keeps only their known members. Throws a `RangeError` for facts that no
 * verifier would accept, so that nothing is signed which nobody can verify.
 *
 * @example
 * const item = { kind: 'document', id: 'doc_1', name: 'report.json', size: 2, sha256: '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a' }
 * const facts = { vaultId: 'vlt_1', organisationId: 'org_1', summary: null, sealedAt: '2026-11-26T12:00:00.000Z', payment: null }
 * const manifest = buildManifest({ ...facts, items: [item], eventsHead: noEvents })
 * manifest.items.length // 1
 * manifest.version // 1
 */
export function buildManifest(facts: SealFacts): SealManifest {
  const { vaultId, organisationId, summary, sealedAt, eventsHead, payment } = facts
  const items = sealedItemsOf(facts.items)
  const { count, hash } = eventsHead
  const made = { version: 1, vaultId, organisationId, summary, sealedAt, items, eventsHead: { count, hash }, payment }
  const read = readManifest(made)
  if ('fault' in read) throw new RangeError(`invalid manifest: ${read.fault.path} ${read.fault.message}`)
  return read.value
}

/**
 * Returns the items of a manifest: sorted by id, with only their known members.
 *
 * @example
 * const items = [{ id: 'doc_2', kind: 'file', name: 'b', size: 1, sha256: '' }, { id: 'doc_1', kind: 'file', name: 'a', size: 1, sha256: '' }]
 * sealedItemsOf(items).map(({ id }) => id) // [ 'doc_1', 'doc_2' ]
 */
export function sealedItemsOf(items: readonly SealedItem[]): SealedItem[] {
  return items.map(onlyTheItem).sort((left, right) => (left.id < right.id ? -1 : 1))
}

/**
 * Returns the SHA-256, in lower-case hex, of the manifest as canonical JSON (RFC 8785).
 *
 * @example
 * const item = { kind: 'document', id: 'doc_1', name: 'report.json', size: 2, sha256: '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a' }
 * const facts = { vaultId: 'vlt_1', organisationId: 'org_1', summary: null, sealedAt: '2026-11-26T12:00:00.000Z', payment: null }
 * const manifest = buildManifest({ ...facts, items: [item], eventsHead: noEvents })
 * manifestHash(manifest) // '2b955291e306d215f645789b92375a5c6e6120aabb0269cd78ffc4555bdbbc38'
 */
export function manifestHash(manifest: SealManifest): string {
  return hexOf(sha256(utf8(canonicalJson(manifest))))
}

/**
 * Returns the Merkle root of the items in their order, in lower-case hex. A leaf is an item as canonical JSON. Source:
 * RFC 6962 section 2.1.
 *
 * @example
 * const item = { kind: 'document', id: 'doc_1', name: 'report.json', size: 2, sha256: '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a' }
 * const facts = { vaultId: 'vlt_1', organisationId: 'org_1', summary: null, sealedAt: '2026-11-26T12:00:00.000Z', payment: null }
 * const manifest = buildManifest({ ...facts, items: [item], eventsHead: noEvents })
 * merkleRootOf(manifest) // 'f297db8740b86c7009a0ba3dc57b0d40176591a664c6778fb264b449791e2885'
 */
export function merkleRootOf(manifest: SealManifest): string {
  return hexOf(merkleRoot(manifest.items.map(itemLeafHash)))
}

/**
 * Returns the statement to sign for a manifest: sign `jwsSigningInput({ alg: 'EdDSA', kid }, statement)`. If the caller passes the hash of
 * this manifest, it is used unchecked.
 *
 * @example
 * const item = { kind: 'document', id: 'doc_1', name: 'report.json', size: 2, sha256: '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a' }
 * const facts = { vaultId: 'vlt_1', organisationId: 'org_1', summary: null, sealedAt: '2026-11-26T12:00:00.000Z', payment: null }
 * const manifest = buildManifest({ ...facts, items: [item], eventsHead: noEvents })
 * statementOf(manifest).treeSize // 1
 */
export function statementOf(
  manifest: SealManifest,
  known: Partial<Pick<SealStatement, 'manifestHash' | 'merkleRoot'>> = {},
): SealStatement {
  return {
    version: 1,
    vaultId: manifest.vaultId,
    sealedAt: manifest.sealedAt,
    manifestHash: known.manifestHash ?? manifestHash(manifest),
    merkleRoot: known.merkleRoot ?? merkleRootOf(manifest),
    treeSize: manifest.items.length,
  }
}

/**
 * Returns the proof of one item; `undefined` if the vault has no item with this id.
 *
 * @example
 * const item = { kind: 'document', id: 'doc_1', name: 'report.json', size: 2, sha256: '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a' }
 * const facts = { vaultId: 'vlt_1', organisationId: 'org_1', summary: null, sealedAt: '2026-11-26T12:00:00.000Z', payment: null }
 * const manifest = buildManifest({ ...facts, items: [item], eventsHead: noEvents })
 * itemProof({ manifest, statement: 'a.b.c' }, 'doc_1')?.index // 0
 * itemProof({ manifest, statement: 'a.b.c' }, 'doc_2') // undefined
 */
export function itemProof({ manifest, statement }: SealProof, itemId: string): ItemProof | undefined {
  const index = manifest.items.findIndex(({ id }) => id === itemId)
  const item = manifest.items[index]
  if (item === undefined) return undefined
  const path = merklePath(manifest.items.map(itemLeafHash), index).map(hexOf)
  return { item, index, path, treeSize: manifest.items.length, statement }
}

/**
 * Returns the hash of an item's leaf in the Merkle tree.
 *
 * @example
 * const item = { kind: 'document', id: 'doc_1', name: 'report.json', size: 2, sha256: '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a' }
 * bytesToHex(itemLeafHash(item)) // '0xf297db8740b86c7009a0ba3dc57b0d40176591a664c6778fb264b449791e2885'
 */
export function itemLeafHash(item: SealedItem): Uint8Array {
  return merkleLeafHash(utf8(canonicalJson(item)))
}

/** Decodes a hash of a manifest or statement. Throws a `RangeError` if it is not hex. */
export function hashBytesOf(hex: string): Uint8Array {
  return hexToBytes(`0x${hex}`)
}

function hexOf(hash: Uint8Array): string {
  return bytesToHex(hash).slice(2)
}

function onlyTheItem({ kind, id, name, mimeType, size, sha256 }: SealedItem): SealedItem {
  return mimeType === undefined ? { kind, id, name, size, sha256 } : { kind, id, name, mimeType, size, sha256 }
}

import { bytesToHex, hexToBytes } from './bytes.ts'
import { canonicalJson } from './canonical-json.ts'
import type { EventsHead } from './event-chain.ts'
import { sha256 } from './hash.ts'
import { merkleLeafHash, merklePath, merkleRoot } from './merkle.ts'
import { readManifest } from './seal-parse.ts'
import { utf8 } from './utf8.ts'
import type { JsonObject } from './x402/messages.ts'

/**
 * One thing in a sealed vault. `size` is in bytes and `sha256` in lower-case hex, both of the content: a file's own bytes, and
 * for a document what `documentContent` makes of its data. A document has no `mimeType`.
 */
export type SealedItem = {
  readonly kind: 'document' | 'file'
  readonly id: string
  readonly name: string
  readonly mimeType?: string | undefined
  readonly size: number
  readonly sha256: string
}

/**
 * The contents of a vault when it was sealed. Items stand in the order of their ids (by UTF-16 code units), each once; `eventsHead` is
 * that of every event before the seal's own; `payment` is the receipt of what paid for it, or null; `sealedAt` is UTC to the
 * millisecond. There are no other members.
 */
export type SealManifest = {
  readonly version: 1
  readonly vaultId: string
  readonly organisationId: string
  readonly summary: string | null
  readonly sealedAt: string
  readonly items: readonly SealedItem[]
  readonly eventsHead: EventsHead
  readonly payment: JsonObject | null
}

/** What a manifest is made of; the items in any order. */
export type SealFacts = Omit<SealManifest, 'version'>

/** What the service signs: the payload of the statement's JWS. Hashes are SHA-256 in lower-case hex. */
export type SealStatement = {
  readonly version: 1
  readonly vaultId: string
  readonly sealedAt: string
  readonly manifestHash: string
  readonly merkleRoot: string
  readonly treeSize: number
}

/** An Ed25519 public key: `kid` as a statement's JWS names it (`did:web:pay.example.com#seal-1`), `x` its 32 bytes in base64url. */
export type SealKey = { readonly kid: string; readonly x: string }

/**
 * The whole proof of a sealed vault: its manifest, and the signed statement as a compact JWS. `keys` saves online
 * readers a request and proves nothing: a forger can put their own keys there.
 */
export type SealProof = {
  readonly manifest: SealManifest
  readonly statement: string
  readonly keys?: readonly SealKey[] | undefined
}

/** The proof that one item was in a sealed vault, without the others: its place, and the audit path in hex, the lowest first. */
export type ItemProof = {
  readonly item: SealedItem
  readonly index: number
  readonly path: readonly string[]
  readonly treeSize: number
  readonly statement: string
}

/** The bytes of a document, over which its size and hash are taken: its data as canonical JSON. Throws as `canonicalJson`. */
export function documentContent(data: JsonObject): Uint8Array {
  return utf8(canonicalJson(data))
}

/**
 * The manifest of these facts: the items put in order, and only the members of an item taken from whatever objects they are.
 * Throws a `RangeError` for facts that no verifier would accept, so that nothing is signed which nobody can check.
 */
export function buildManifest(facts: SealFacts): SealManifest {
  const { vaultId, organisationId, summary, sealedAt, eventsHead, payment } = facts
  const items = sealedItemsOf(facts.items)
  const { count, hash } = eventsHead
  const made = { version: 1, vaultId, organisationId, summary, sealedAt, items, eventsHead: { count, hash }, payment }
  const read = readManifest(made)
  if ('fault' in read) throw new RangeError(`no manifest can be made of this: ${read.fault.path} ${read.fault.message}`)
  return read.value
}

/** The items of a manifest: in the order of their ids, each with the members of an item alone. */
export function sealedItemsOf(items: readonly SealedItem[]): SealedItem[] {
  return items.map(onlyTheItem).sort((left, right) => (left.id < right.id ? -1 : 1))
}

/** SHA-256, in lower-case hex, of the manifest as canonical JSON (RFC 8785). */
export function manifestHash(manifest: SealManifest): string {
  return hexOf(sha256(utf8(canonicalJson(manifest))))
}

/** The root over the items in their order, in lower-case hex. A leaf is an item as canonical JSON. Source: RFC 6962 section 2.1. */
export function merkleRootOf(manifest: SealManifest): string {
  return hexOf(merkleRoot(manifest.items.map(itemLeafHash)))
}

/**
 * What is to be signed about a manifest. Sign `jwsSigningInput({ alg: 'EdDSA', kid }, statement)`. A hash that the caller has made
 * already, of this manifest, is taken as it is.
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

/** The proof of one item alone; `undefined` where the vault holds no item of that id. */
export function itemProof({ manifest, statement }: SealProof, itemId: string): ItemProof | undefined {
  const index = manifest.items.findIndex(({ id }) => id === itemId)
  const item = manifest.items[index]
  if (item === undefined) return undefined
  const path = merklePath(manifest.items.map(itemLeafHash), index).map(hexOf)
  return { item, index, path, treeSize: manifest.items.length, statement }
}

/** The hash of an item's leaf, as the tree holds it. */
export function itemLeafHash(item: SealedItem): Uint8Array {
  return merkleLeafHash(utf8(canonicalJson(item)))
}

/** The bytes of a hash as manifests and statements write it. Throws a `RangeError` for what is not hex. */
export function hashBytesOf(hex: string): Uint8Array {
  return hexToBytes(`0x${hex}`)
}

function hexOf(hash: Uint8Array): string {
  return bytesToHex(hash).slice(2)
}

function onlyTheItem({ kind, id, name, mimeType, size, sha256 }: SealedItem): SealedItem {
  return mimeType === undefined ? { kind, id, name, size, sha256 } : { kind, id, name, mimeType, size, sha256 }
}

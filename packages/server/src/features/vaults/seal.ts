import { createHash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  composeJws,
  itemLeafHash,
  type JsonObject,
  jwsSigningInput,
  merkleParents,
  merklePathPlaces,
  parseJws,
  type SealedItem,
  sealedItemsOf,
  statementOf,
  utf8,
} from '@purser/protocol'
import type { Queryable, Tx } from '../../platform/db/db.ts'
import { keyIdOf } from '../../platform/http/key-set.ts'
import type { Id } from '../../platform/ids.ts'
import type { JsonStream } from '../../platform/json-stream.ts'
import type { DocumentRow, FileRow } from './document-store.ts'
import { fail } from './errors.ts'
import { appendVaultEvent } from './events.ts'
import { isLarge, itemPages, largeProof } from './large.ts'
import { manifestOfParts, type WrittenManifest } from './manifest-parts.ts'
import type { Ctx } from './ports.ts'
import type { Proof, RunningManifest, SealRequest, Vault, VaultId } from './schema.ts'
import { findPlaced, findProof, findSealNodes, findStatement, insertSealTree, type PlacedItem } from './seal-store.ts'
import { findVault, markSealed, type VaultRow } from './store.ts'
import { lockWritable, shownVault } from './vault.ts'

/**
 * Closes a vault to writes forever and signs its contents. The manifest is read under the vault's row lock, so that it contains
 * exactly what was acknowledged before, and nothing can be added after. The signature is made under the lock too, since it covers
 * what the lock protects.
 */
export function sealVault(ctx: Ctx, vaultId: VaultId, request: SealRequest): Promise<Vault> {
  return ctx.db.tx(async (tx) => {
    const vault = await lockWritable(tx, ctx, vaultId)
    const sealedAt = ctx.clock.now()
    const summary = request.summary ?? null
    const { manifest, text, hash } = await manifestOf(tx, ctx, { ...vault, summary, sealedAt })
    const tree = await sealTreeOf(manifest.items)
    const seal = { summary, sealedAt, manifest: text, manifestHash: hash }
    const statement = statementOf(manifest, { manifestHash: hash, merkleRoot: tree.root })
    await markSealed(tx, ctx.tenant, vaultId, { ...seal, statement: await sign(ctx, statement) })
    await insertSealTree(tx, ctx.tenant, vaultId, tree.nodes)
    const reported = { summary: summary ?? '', sealedAt: sealedAt.toISOString(), manifestHash: seal.manifestHash }
    const last = await appendVaultEvent(tx, ctx, vault, { type: 'vault.sealed', payload: reported })
    await ctx.publish(tx, 'vault.sealed', { vaultId, ...reported })
    return shownVault(ctx.tenant, { ...last.vault, summary, sealedAt, manifestHash: seal.manifestHash })
  })
}

type Sealing = VaultRow & { readonly sealedAt: Date }

async function manifestOf(
  tx: Tx,
  ctx: Pick<Ctx, 'clock' | 'receiptForSeal' | 'tenant'>,
  vault: Sealing,
): Promise<WrittenManifest> {
  const { tenant, clock } = ctx
  const facts = {
    vaultId: vault.id,
    organisationId: tenant.organisationId,
    summary: vault.summary,
    sealedAt: vault.sealedAt.toISOString(),
    eventsHead: { count: vault.eventCount, hash: vault.eventHash },
    payment: await receiptOf(tx, ctx, vault),
  }
  return manifestOfParts(facts, itemPages({ db: tx, tenant, clock }, vault))
}

/** Returns what a seal would freeze now, from what was read of the vault. It is not signed. */
export async function runningManifest(
  ctx: Pick<Ctx, 'db' | 'receiptForSeal' | 'tenant'>,
  vault: VaultRow,
  { documents, files }: { readonly documents: readonly DocumentRow[]; readonly files: readonly FileRow[] },
): Promise<RunningManifest> {
  const items = sealedItemsOf(itemsFrom(documents, files))
  return { ...(await runningManifestHead(ctx, vault)), items }
}

/** Returns the running manifest without its items. */
export async function runningManifestHead(
  ctx: Pick<Ctx, 'db' | 'receiptForSeal' | 'tenant'>,
  vault: VaultRow,
): Promise<Omit<RunningManifest, 'items'>> {
  return {
    version: 1,
    vaultId: vault.id,
    organisationId: ctx.tenant.organisationId,
    summary: vault.summary,
    sealedAt: null,
    eventsHead: { count: vault.eventCount, hash: vault.eventHash },
    payment: await receiptOf(ctx.db, ctx, vault),
  }
}

function itemsFrom(documents: readonly DocumentRow[], files: readonly FileRow[]): SealedItem[] {
  return [
    ...documents.map((document) => ({ kind: 'document' as const, ...document })),
    ...files.map((file) => ({ kind: 'file' as const, ...file })),
  ]
}

/** Returns the deployment's receipt of the payment, or at least its id. */
async function receiptOf(
  db: Queryable,
  ctx: Pick<Ctx, 'receiptForSeal' | 'tenant'>,
  { paymentId }: VaultRow,
): Promise<JsonObject | null> {
  if (paymentId === null) return null
  return (await ctx.receiptForSeal?.(db, ctx.tenant, paymentId)) ?? { paymentId }
}

async function sign(
  { serviceSeal, baseUrl }: Pick<Ctx, 'baseUrl' | 'serviceSeal'>,
  statement: JsonObject,
): Promise<string> {
  const input = jwsSigningInput({ alg: 'EdDSA', kid: keyIdOf(baseUrl, serviceSeal.kid) }, statement)
  return composeJws(input, await serviceSeal.sign(utf8(input)))
}

/**
 * Returns the stored statement of a seal. One by a withdrawn key is signed again with the present key: whoever has the old key can sign any statement,
 * but the database has only those that the service made.
 */
async function validStatement(ctx: Pick<Ctx, 'baseUrl' | 'serviceSeal'>, stored: string): Promise<string> {
  const jws = parseJws(stored)
  const keys = await ctx.serviceSeal.publicKeys()
  return jws === undefined || keys.some(({ kid }) => jws.header.kid.endsWith(`#${kid}`))
    ? stored
    : sign(ctx, jws.payload)
}

const hashBytes = 32
/** Hashes per turn of the event loop: a few milliseconds. */
const hashesPerTurn = 1_000

/** A seal's Merkle tree: all nodes of 32 bytes, the leaves first and then each level above them; and its root in hex. */
interface SealTree {
  readonly nodes: Uint8Array
  readonly root: string
}

/**
 * Returns the tree over a manifest's items in their order. It yields to the event loop, so that a vault of 100,000 items blocks
 * no other request. Without items there is no node, and the root is the hash of nothing. Source: RFC 6962 section 2.1.
 */
async function sealTreeOf(items: readonly SealedItem[]): Promise<SealTree> {
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

type ItemId = Id<'doc'> | Id<'fil'>

/**
 * Returns the proof of a sealed vault, or of one item without the others. Anybody can check it offline with the service's public
 * key.
 */
export async function getProof(
  ctx: Pick<Ctx, 'baseUrl' | 'clock' | 'db' | 'serviceSeal' | 'tenant'>,
  vaultId: VaultId,
  itemId: ItemId | undefined,
): Promise<Proof | JsonStream> {
  const vault = await findVault(ctx.db, ctx.tenant, vaultId, ctx.clock.now())
  if (vault === undefined) throw fail('vault-not-found')
  if (vault.sealedAt === null) throw fail('vault-not-sealed')
  if (itemId !== undefined) return itemProof(ctx, vault, itemId)
  if (!isLarge(vault)) return wholeProof(ctx, vaultId)
  return largeProof(ctx, vault, async (stored) => ({
    statement: await validStatement(ctx, stored),
    keys: await keysOf(ctx),
  }))
}

async function wholeProof(
  ctx: Pick<Ctx, 'baseUrl' | 'db' | 'serviceSeal' | 'tenant'>,
  vaultId: VaultId,
): Promise<Proof> {
  const proof = await findProof(ctx.db, ctx.tenant, vaultId)
  if (proof === undefined) throw fail('vault-not-found')
  return { ...proof, statement: await validStatement(ctx, proof.statement), keys: await keysOf(ctx) }
}

/** Reads the item's own row and the tree that the seal stored: a vault of 100,000 items costs no more than one of ten. */
async function itemProof(
  ctx: Pick<Ctx, 'baseUrl' | 'db' | 'serviceSeal' | 'tenant'>,
  vault: VaultRow,
  itemId: ItemId,
): Promise<Proof> {
  const placed = await findPlaced(ctx.db, ctx.tenant, vault.id, itemId)
  if (placed === undefined) throw fail('item-not-found')
  const stored = await findStatement(ctx.db, ctx.tenant, vault.id)
  if (stored === undefined) throw fail('vault-not-found')
  const treeSize = vault.documentCount + vault.fileCount
  const path = await pathOf(ctx, vault.id, merklePathPlaces(treeSize, placed.position))
  const statement = await validStatement(ctx, stored)
  return { item: sealedItem(itemId, placed), index: placed.position, path, treeSize, statement }
}

async function pathOf(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  vaultId: VaultId,
  positions: readonly number[],
): Promise<string[]> {
  return (await findSealNodes(ctx.db, ctx.tenant, vaultId, positions)) ?? pathOfOldSeal(ctx, vaultId, positions)
}

/** Computes and stores the tree of a vault that was sealed before trees were stored. */
async function pathOfOldSeal(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  vaultId: VaultId,
  positions: readonly number[],
): Promise<string[]> {
  const proof = await findProof(ctx.db, ctx.tenant, vaultId)
  if (proof === undefined) throw fail('vault-not-found')
  const { nodes } = await sealTreeOf(proof.manifest.items)
  await insertSealTree(ctx.db, ctx.tenant, vaultId, nodes)
  return positions.map((position) => Buffer.from(nodes.subarray(position * 32, position * 32 + 32)).toString('hex'))
}

function sealedItem(id: ItemId, { name, mimeType, size, sha256 }: PlacedItem) {
  const facts = { id, name, size, sha256 }
  return mimeType === null ? { kind: 'document' as const, ...facts } : { kind: 'file' as const, mimeType, ...facts }
}

async function keysOf({ serviceSeal, baseUrl }: Pick<Ctx, 'baseUrl' | 'serviceSeal'>) {
  const keys = await serviceSeal.publicKeys()
  return keys.map(({ kid, x }) => ({ kid: keyIdOf(baseUrl, kid), x }))
}

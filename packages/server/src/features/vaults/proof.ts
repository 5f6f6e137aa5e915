import { merklePathPlaces } from '@purser/protocol'
import { keyIdOf } from '../../platform/http/key-set.ts'
import type { Id } from '../../platform/ids.ts'
import { fail } from './errors.ts'
import type { Ctx } from './ports.ts'
import type { Proof, VaultId } from './schema.ts'
import { findPlaced, findProof, findSealNodes, findStatement, insertSealTree, type PlacedItem } from './seal-store.ts'
import { sealTreeOf } from './seal-tree.ts'
import { findVault, type VaultRow } from './store.ts'

type ItemId = Id<'doc'> | Id<'fil'>

/**
 * Returns the proof of a sealed vault, or of one item without the others. Anybody can check it offline with the service's public
 * key.
 */
export async function getProof(ctx: Ctx, vaultId: VaultId, itemId: ItemId | undefined): Promise<Proof> {
  const vault = await findVault(ctx.db, ctx.tenant, vaultId, ctx.clock.now())
  if (vault === undefined) throw fail('vault-not-found')
  if (vault.sealedAt === null) throw fail('vault-not-sealed')
  return itemId === undefined ? wholeProof(ctx, vaultId) : itemProof(ctx, vault, itemId)
}

async function wholeProof(ctx: Ctx, vaultId: VaultId): Promise<Proof> {
  const proof = await findProof(ctx.db, ctx.tenant, vaultId)
  if (proof === undefined) throw fail('vault-not-found')
  return { ...proof, keys: await keysOf(ctx) }
}

/** Reads the item's own row and the tree that the seal stored: a vault of 100,000 items costs no more than one of ten. */
async function itemProof(ctx: Ctx, vault: VaultRow, itemId: ItemId): Promise<Proof> {
  const placed = await findPlaced(ctx.db, ctx.tenant, vault.id, itemId)
  if (placed === undefined) throw fail('item-not-found')
  const statement = await findStatement(ctx.db, ctx.tenant, vault.id)
  if (statement === undefined) throw fail('vault-not-found')
  const treeSize = vault.documentCount + vault.fileCount
  const path = await pathOf(ctx, vault.id, merklePathPlaces(treeSize, placed.place))
  return { item: sealedItem(itemId, placed), index: placed.place, path, treeSize, statement }
}

async function pathOf(ctx: Ctx, vaultId: VaultId, places: readonly number[]): Promise<string[]> {
  return (await findSealNodes(ctx.db, ctx.tenant, vaultId, places)) ?? pathOfOldSeal(ctx, vaultId, places)
}

/** Computes and stores the tree of a vault that was sealed before trees were stored. */
async function pathOfOldSeal(ctx: Ctx, vaultId: VaultId, places: readonly number[]): Promise<string[]> {
  const proof = await findProof(ctx.db, ctx.tenant, vaultId)
  if (proof === undefined) throw fail('vault-not-found')
  const { nodes } = await sealTreeOf(proof.manifest.items)
  await insertSealTree(ctx.db, ctx.tenant, vaultId, nodes)
  return places.map((place) => Buffer.from(nodes.subarray(place * 32, place * 32 + 32)).toString('hex'))
}

function sealedItem(id: ItemId, { name, mimeType, size, sha256 }: PlacedItem) {
  const facts = { id, name, size, sha256 }
  return mimeType === null ? { kind: 'document' as const, ...facts } : { kind: 'file' as const, mimeType, ...facts }
}

async function keysOf({ serviceSeal, baseUrl }: Ctx) {
  const keys = await serviceSeal.publicKeys()
  return keys.map(({ kid, x }) => ({ kid: keyIdOf(baseUrl, kid), x }))
}

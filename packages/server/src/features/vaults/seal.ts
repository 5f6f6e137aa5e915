import {
  buildManifest,
  composeJws,
  type JsonObject,
  jwsSigningInput,
  manifestHash,
  type SealedItem,
  type SealManifest,
  type SealStatement,
  sealedItemsOf,
  statementOf,
  utf8,
} from '@purser/protocol'
import type { Queryable, Tx } from '../../platform/db/db.ts'
import { keyIdOf } from '../../platform/http/key-set.ts'
import { type DocumentRow, type FileRow, listDocuments, listFiles } from './document-store.ts'
import { appendVaultEvent } from './events.ts'
import type { Ctx } from './ports.ts'
import type { RunningManifest, SealRequest, Vault, VaultId } from './schema.ts'
import { insertSealTree } from './seal-store.ts'
import { sealTreeOf } from './seal-tree.ts'
import { markSealed, type VaultRow } from './store.ts'
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
    const manifest = await manifestOf(tx, ctx, { ...vault, summary, sealedAt })
    const tree = await sealTreeOf(manifest.items)
    const seal = { summary, sealedAt, manifest, manifestHash: manifestHash(manifest) }
    const statement = statementOf(manifest, { manifestHash: seal.manifestHash, merkleRoot: tree.root })
    await markSealed(tx, ctx.tenant, vaultId, { ...seal, statement: await sign(ctx, statement) })
    await insertSealTree(tx, ctx.tenant, vaultId, tree.nodes)
    const reported = { summary: summary ?? '', sealedAt: sealedAt.toISOString(), manifestHash: seal.manifestHash }
    const last = await appendVaultEvent(tx, ctx, vault, { type: 'vault.sealed', payload: reported })
    await ctx.publish(tx, 'vault.sealed', { vaultId, ...reported })
    return shownVault(ctx.tenant, { ...last.vault, summary, sealedAt, manifestHash: seal.manifestHash })
  })
}

type Sealing = VaultRow & { readonly sealedAt: Date }

async function manifestOf(tx: Tx, ctx: Ctx, vault: Sealing): Promise<SealManifest> {
  return buildManifest({
    vaultId: vault.id,
    organisationId: ctx.tenant.organisationId,
    summary: vault.summary,
    sealedAt: vault.sealedAt.toISOString(),
    items: await itemsOf(tx, ctx, vault.id),
    eventsHead: { count: vault.eventCount, hash: vault.eventHash },
    payment: await receiptOf(tx, ctx, vault),
  })
}

async function itemsOf(tx: Tx, { tenant }: Ctx, vaultId: VaultId): Promise<SealedItem[]> {
  return itemsFrom(await listDocuments(tx, tenant, vaultId, 0), await listFiles(tx, tenant, vaultId))
}

/** Returns what a seal would freeze now, from what was read of the vault. It is not signed. */
export async function runningManifest(
  ctx: Ctx,
  vault: VaultRow,
  { documents, files }: { readonly documents: readonly DocumentRow[]; readonly files: readonly FileRow[] },
): Promise<RunningManifest> {
  return {
    version: 1,
    vaultId: vault.id,
    organisationId: ctx.tenant.organisationId,
    summary: vault.summary,
    sealedAt: null,
    items: sealedItemsOf(itemsFrom(documents, files)),
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
async function receiptOf(db: Queryable, ctx: Ctx, { paymentId }: VaultRow): Promise<JsonObject | null> {
  if (paymentId === null) return null
  return (await ctx.receiptForSeal?.(db, ctx.tenant, paymentId)) ?? { paymentId }
}

async function sign({ serviceSeal, baseUrl }: Ctx, statement: SealStatement): Promise<string> {
  const input = jwsSigningInput({ alg: 'EdDSA', kid: keyIdOf(baseUrl, serviceSeal.kid) }, statement)
  return composeJws(input, await serviceSeal.sign(utf8(input)))
}

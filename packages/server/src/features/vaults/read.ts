import type { z } from 'zod'
import type { JsonStream } from '../../platform/json-stream.ts'
import type { Page } from '../../platform/operation.ts'
import { openCursor, pageOf } from '../../platform/wire.ts'
import { type FileRow, listDocuments, listFiles } from './document-store.ts'
import { shownDocument } from './documents.ts'
import { fail } from './errors.ts'
import { fileUrl } from './files/index.ts'
import { isLarge, largeState } from './large.ts'
import { getSealedHead } from './large-store.ts'
import type { Ctx } from './ports.ts'
import type { Vault, VaultFile, VaultId, VaultQuery, VaultState } from './schema.ts'
import { runningManifest, runningManifestHead } from './seal.ts'
import { findProof } from './seal-store.ts'
import { findVault, listVaults, type VaultRow } from './store.ts'
import { accessEndsAt } from './tokens/index.ts'
import { shownVault } from './vault.ts'

/** Most bytes of documents' data in a vault's record; the rest is available at each document's own address. */
const dataBytesMax = 262_144

/**
 * Returns a vault with its contents and its manifest: the signed one once it is sealed, before that what a seal would freeze.
 * Nothing is locked while it is read: during a write it may show a document that `eventCount` does not count yet.
 */
export async function getVault(ctx: Ctx, vaultId: VaultId): Promise<VaultState | JsonStream> {
  const vault = await findVault(ctx.db, ctx.tenant, vaultId, ctx.clock.now())
  if (vault === undefined) throw fail('vault-not-found')
  if (isLarge(vault)) return getLargeVault(ctx, vault)
  const [documents, files, proof, accessEnd] = await Promise.all([
    listDocuments(ctx.db, ctx.tenant, vaultId, dataBytesMax),
    listFiles(ctx.db, ctx.tenant, vaultId),
    vault.sealedAt === null ? undefined : findProof(ctx.db, ctx.tenant, vaultId),
    accessEndsAt(ctx),
  ])
  return {
    ...shownVault(ctx.tenant, vault),
    documents: documents.map(shownDocument),
    files: files.map((file) => shownFile(ctx, vaultId, { file, vaultEnd: vault.expiresAt, accessEnd })),
    eventCount: vault.eventCount,
    manifest: proof?.manifest ?? (await runningManifest(ctx, vault, { documents, files })),
  }
}

async function getLargeVault(ctx: Ctx, vault: VaultRow): Promise<JsonStream> {
  const accessEnd = await accessEndsAt(ctx)
  const readHead = async (): Promise<object> =>
    vault.sealedAt === null ? runningManifestHead(ctx, vault) : (await getSealedHead(ctx.db, ctx.tenant, vault.id)).head
  const shown = (file: FileRow) => shownFile(ctx, vault.id, { file, vaultEnd: vault.expiresAt, accessEnd })
  return largeState(ctx, vault, { readHead, shownFile: shown, dataBytesMax })
}

/** Returns a page of vaults that have not expired, newest first. */
export async function pageOfVaults(
  ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>,
  query: z.output<typeof VaultQuery>,
): Promise<Page<Vault>> {
  const page = { limit: query.limit, after: openCursor(query.cursor) }
  const rows = await listVaults(ctx.db, ctx.tenant, { status: query.status, now: ctx.clock.now() }, page)
  const shownOf = pageOf(rows, query.limit, (row) => row.id)
  return { ...shownOf, items: shownOf.items.map((row) => shownVault(ctx.tenant, row)) }
}

interface ShownTo {
  readonly file: FileRow
  readonly vaultEnd: Date | null
  /** The end of the reader's own access, if it has one; every link ends with it. */
  readonly accessEnd: Date | null
}

function shownFile(
  ctx: Pick<Ctx, 'actor' | 'baseUrl' | 'clock' | 'fileLinks' | 'person' | 'tenant'>,
  vaultId: VaultId,
  { file, ...ends }: ShownTo,
): VaultFile {
  return { ...file, url: fileUrl(ctx, { vaultId, fileId: file.id, ...ends }) }
}

import { createHash } from 'node:crypto'
import { documentContent } from '@purser/protocol'
import { z } from 'zod'
import { failPlatform } from '../../platform/errors.ts'
import { type Id, id } from '../../platform/ids.ts'
import { type DocumentRow, findDocument } from './document-store.ts'
import { fail } from './errors.ts'
import type { Ctx } from './ports.ts'
import { documentBytesMax, type NewDocument, type VaultDocument, type VaultId, VaultParams } from './schema.ts'
import { findVault } from './store.ts'

/**
 * Adds a document to a vault. Its data is stored as canonical JSON, the text that size, hash and seal cover; size and hash are
 * computed before anything is locked.
 */
export async function addDocument(ctx: Ctx, vaultId: VaultId, { name, data }: NewDocument): Promise<VaultDocument> {
  const bytes = documentContent(data)
  const size = bytes.length
  if (size > documentBytesMax) throw failPlatform('payload-too-large')
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  return ctx.writeDocument(ctx, vaultId, { name, data, content: Buffer.from(bytes).toString('utf8'), size, sha256 })
}

/** Returns one document with its data. */
export async function getDocument(
  ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>,
  vaultId: VaultId,
  documentId: Id<'doc'>,
): Promise<VaultDocument> {
  const vault = await findVault(ctx.db, ctx.tenant, vaultId, ctx.clock.now())
  if (vault === undefined) throw fail('vault-not-found')
  const document = await findDocument(ctx.db, ctx.tenant, vaultId, documentId)
  if (document === undefined) throw fail('document-not-found')
  return shownDocument(document)
}

const Made = z.object({ id: id('doc') })

/** Returns what `documentAt` finds an added document by. */
export function documentResource(response: unknown, params: unknown): string {
  return `${VaultParams.parse(params).id}/${Made.parse(response).id}`
}

export function documentAt(ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>, place: string): Promise<VaultDocument> {
  const [vaultId, documentId] = place.split('/')
  return getDocument(ctx, VaultParams.parse({ id: vaultId }).id, Made.parse({ id: documentId }).id)
}

export function shownDocument({ data, ...rest }: DocumentRow): VaultDocument {
  return data === null ? rest : { ...rest, data }
}

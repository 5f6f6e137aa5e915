import { createHash } from 'node:crypto'
import { documentContent } from '@purser/protocol'
import { z } from 'zod'
import { failPlatform } from '../../platform/errors.ts'
import { type Id, id, newId } from '../../platform/ids.ts'
import { planOf } from '../plans/index.ts'
import { type DocumentRow, findDocument, insertDocument } from './document-store.ts'
import { fail } from './errors.ts'
import { appendVaultEvent, refuseFullStream } from './events.ts'
import type { Ctx } from './ports.ts'
import { refuseOver, refuseUnsealable, takeOrRefuse } from './quota.ts'
import { documentBytesMax, type NewDocument, type VaultDocument, type VaultId, VaultParams } from './schema.ts'
import { findVault } from './store.ts'
import { lockWritable } from './vault.ts'

/**
 * Adds a document to a vault. Its data is stored as canonical JSON, the text that size, hash and seal cover; size and hash are
 * computed before anything is locked.
 */
export function addDocument(ctx: Ctx, vaultId: VaultId, { name, data }: NewDocument): Promise<VaultDocument> {
  const bytes = documentContent(data)
  const size = bytes.length
  if (size > documentBytesMax) throw failPlatform('payload-too-large')
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  return ctx.db.tx(async (tx) => {
    const vault = await lockWritable(tx, ctx, vaultId)
    const plan = await planOf(tx, ctx.tenant.organisationId)
    refuseOver(ctx, 'documents-per-vault-exceeded', plan.documentsPerVault, vault.documentCount)
    refuseUnsealable(ctx, 'documents-per-vault-exceeded', vault)
    refuseFullStream(vault)
    const document = { id: newId('doc', ctx), name, size, sha256, createdAt: ctx.clock.now() }
    const content = Buffer.from(bytes).toString('utf8')
    await insertDocument(tx, ctx.tenant, vaultId, { ...document, content })
    const payload = { documentId: document.id, name, size, sha256 }
    await appendVaultEvent(tx, ctx, vault, {
      type: 'document.added',
      payload,
      growth: { documents: 1, bytes: size },
    })
    await takeOrRefuse(tx, ctx, plan, { kind: 'storageBytes', count: size })
    return { ...document, data }
  })
}

/** Returns one document with its data. */
export async function getDocument(ctx: Ctx, vaultId: VaultId, documentId: Id<'doc'>): Promise<VaultDocument> {
  const vault = await findVault(ctx.db, ctx.tenant, vaultId, ctx.clock.now())
  if (vault === undefined) throw fail('vault-not-found')
  const document = await findDocument(ctx.db, ctx.tenant, vaultId, documentId)
  if (document === undefined) throw fail('document-not-found')
  return shownDocument(document)
}

const Made = z.object({ id: id('doc') })

/** Returns what `documentAt` finds an added document by. */
export function documentPlace(answer: unknown, params: unknown): string {
  return `${VaultParams.parse(params).id}/${Made.parse(answer).id}`
}

export function documentAt(ctx: Ctx, place: string): Promise<VaultDocument> {
  const [vaultId, documentId] = place.split('/')
  return getDocument(ctx, VaultParams.parse({ id: vaultId }).id, Made.parse({ id: documentId }).id)
}

export function shownDocument({ data, ...rest }: DocumentRow): VaultDocument {
  return data === null ? rest : { ...rest, data }
}

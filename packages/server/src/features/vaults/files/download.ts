import type { ByteRange, OpenedBlob } from '../../../files/index.ts'
import { shareOwnerOf } from '../../../platform/ctx.ts'
import { namesTag } from '../../../platform/http/accept.ts'
import type { Id } from '../../../platform/ids.ts'
import { Reply, type StreamRequest } from '../../../platform/operation.ts'
import { fail as failVault } from '../errors.ts'
import type { Ctx } from '../ports.ts'
import type { VaultId } from '../schema.ts'
import { findVault } from '../store.ts'
import { sha256Field } from './digest.ts'
import { fail } from './errors.ts'
import { attachmentOf } from './form.ts'
import { findFile, type StoredFile } from './store.ts'

/**
 * Returns a file's bytes, or the requested range, as fast as the caller reads. Whatever its media type, a browser saves the file
 * and never displays it: it is untrusted content on the service's own address.
 */
export async function downloadFile(
  ctx: Pick<Ctx, 'blobs' | 'clock' | 'db' | 'shareOwner' | 'tenant'>,
  { id: vaultId, fileId }: { readonly id: VaultId; readonly fileId: Id<'fil'> },
  headers: StreamRequest['headers'],
): Promise<Reply> {
  const vault = await findVault(ctx.db, ctx.tenant, vaultId, ctx.clock.now())
  if (vault === undefined) throw failVault('vault-not-found')
  const file = await findFile(ctx.db, ctx.tenant, vaultId, fileId)
  if (file === undefined) throw fail('file-not-found')
  return replyWith(ctx, { vaultId, file }, headers)
}

interface VaultFileRef {
  readonly vaultId: VaultId
  readonly file: StoredFile
}

async function replyWith(
  ctx: Pick<Ctx, 'blobs' | 'db' | 'shareOwner' | 'tenant'>,
  place: VaultFileRef,
  headers: StreamRequest['headers'],
): Promise<Reply> {
  const { file } = place
  const { size } = file
  const etag = `"${file.sha256}"`
  const portion = portionOf(headers, { size, etag })
  if (portion.kind === 'unchanged') return new Reply(304, undefined, { etag, 'cache-control': cacheControl })
  if (portion.kind === 'outside') throw fail('range-not-satisfiable', { size })
  const { content } = await openBlob(ctx, place, portion.kind === 'part' ? portion.range : undefined)
  if (portion.kind !== 'part') return new Reply(200, content, { ...headersOf(file, etag), ...wholeHeaders(file) })
  const { offset, length } = portion.range
  const part = { 'content-length': String(length), 'content-range': `bytes ${offset}-${offset + length - 1}/${size}` }
  return new Reply(206, content, { ...headersOf(file, etag), ...part })
}

async function openBlob(
  ctx: Pick<Ctx, 'blobs' | 'db' | 'shareOwner' | 'tenant'>,
  { vaultId, file }: VaultFileRef,
  range: ByteRange | undefined,
): Promise<OpenedBlob> {
  const opened = await ctx.blobs.open(file.blobKey, range, shareOwnerOf(ctx))
  if (opened !== undefined && opened.size === file.size) return opened
  opened?.content.destroy()
  // The file was deleted since the row was read, or its blob is lost: the row says which.
  const isGone = (await findFile(ctx.db, ctx.tenant, vaultId, file.id)) === undefined
  throw isGone ? fail('file-not-found') : new Error(`the blob of ${file.id} is not what its row says`)
}

/** Only the caller may cache it, and must revalidate each time. */
const cacheControl = 'private, no-cache'

function headersOf({ name, mimeType, sha256 }: StoredFile, etag: string): Record<string, string> {
  return {
    'content-type': mimeType,
    'content-disposition': attachmentOf(name),
    'content-security-policy': "default-src 'none'; sandbox",
    'accept-ranges': 'bytes',
    'cache-control': cacheControl,
    'repr-digest': sha256Field(sha256),
    etag,
  }
}

/** Returns digest headers, which are known only for the whole file. */
function wholeHeaders({ size, sha256 }: StoredFile): Record<string, string> {
  return { 'content-length': String(size), 'content-digest': sha256Field(sha256) }
}

/** The response to a request for a file: all of it, a part, not modified, or a refusal. */
export type Portion =
  | { readonly kind: 'whole' }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'outside' }
  | { readonly kind: 'part'; readonly range: ByteRange }

interface Conditions {
  readonly range?: string | undefined
  readonly 'if-range'?: string | undefined
  readonly 'if-none-match'?: string | undefined
}

/**
 * Returns the bytes to send for a GET of a file of `size` bytes with the strong entity tag `etag`. It is the whole file for several ranges,
 * units other than bytes, malformed ranges, and a range whose `If-Range` names another content. An `If-Range` with a date never
 * matches, since the service sends no Last-Modified. Source: RFC 9110 sections 13.1.2, 13.1.5, 13.2.2, 14.1.2 and 14.2.
 */
export function portionOf(
  requested: Conditions,
  { size, etag }: { readonly size: number; readonly etag: string },
): Portion {
  if (namesTag(requested['if-none-match'], etag)) return { kind: 'unchanged' }
  const ifRange = requested['if-range']?.trim()
  if (requested.range === undefined || (ifRange !== undefined && ifRange !== etag)) return { kind: 'whole' }
  const [, first, last] = /^bytes=[ \t]*(\d{0,15})-(\d{0,15})[ \t]*$/i.exec(requested.range.trim()) ?? []
  if (first === undefined || last === undefined || (first === '' && last === '')) return { kind: 'whole' }
  return first === ''
    ? suffixOf(Number(last), size)
    : fromTo(Number(first), last === '' ? size - 1 : Number(last), size)
}

function suffixOf(length: number, size: number): Portion {
  if (length === 0 || size === 0) return { kind: 'outside' }
  const kept = Math.min(length, size)
  return { kind: 'part', range: { offset: size - kept, length: kept } }
}

function fromTo(first: number, last: number, size: number): Portion {
  if (first >= size) return { kind: 'outside' }
  if (last < first) return { kind: 'whole' }
  return { kind: 'part', range: { offset: first, length: Math.min(last, size - 1) - first + 1 } }
}

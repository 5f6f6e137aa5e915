import { instantOf, unixSeconds } from '../../../platform/clock.ts'
import type { Caller } from '../../../platform/ctx.ts'
import { unauthorized } from '../../../platform/http/authenticate.ts'
import { type Id, isId } from '../../../platform/ids.ts'
import type { GuestRequest } from '../../../platform/operation.ts'
import { type Reader, requireReader } from '../../../platform/reader.ts'
import { appendVaultEvent } from '../events.ts'
import type { Ctx, Deps } from '../ports.ts'
import { releaseCounts } from '../quota.ts'
import type { VaultId } from '../schema.ts'
import { lockWritable } from '../vault.ts'
import { fail } from './errors.ts'
import { deleteFileRow, findFileOwner, queueDeletion } from './store.ts'

/** Lifetime of a link to a file of a persisted vault, in seconds. */
const linkSeconds = 86_400

export interface Linked {
  readonly vaultId: VaultId
  readonly fileId: Id<'fil'>
  /** The expiry of the vault; null if it is persisted. */
  readonly vaultEnd: Date | null
  /** The end of the caller's own access, if it has an end. */
  readonly accessEnd?: Date | null
}

/**
 * Returns an address that opens one file of one vault, for anyone who has it, without a header, until the vault expires, or for 24 hours if it does
 * not. The link ends with the key, session or token for which it was issued, and with the file and its vault.
 */
export function fileUrl(
  ctx: Pick<Ctx, 'baseUrl' | 'clock' | 'fileLinks' | 'actor' | 'person' | 'tenant'>,
  { vaultId, fileId, vaultEnd, accessEnd = null }: Linked,
): string {
  const ends = [
    vaultEnd ?? instantOf(ctx.clock.now().getTime() + linkSeconds * 1_000),
    ...(accessEnd ? [accessEnd] : []),
  ]
  const expires = String(Math.min(...ends.map(unixSeconds)))
  const by = requireReader(ctx)
  const signature = ctx.fileLinks.sign(signedText(vaultId, fileId, { expires, by }))
  return `${ctx.baseUrl}/vaults/${vaultId}/files/${fileId}?${new URLSearchParams({ expires, by, signature })}`
}

function signedText(vaultId: string, fileId: string, { expires, by }: { expires: string; by: string }): string {
  return `${vaultId}/${fileId}/${expires}/${by}`
}

/** Returns a guest for a valid signature of the requested file; undefined if the request has no signature. */
export async function linkGuest(
  deps: Pick<Deps, 'clock' | 'db' | 'endedReaders' | 'environments' | 'fileLinks'>,
  { params, query }: GuestRequest,
): Promise<Caller | undefined> {
  const { expires, by, signature } = query
  if (expires === undefined && signature === undefined) return undefined
  const { id = '', fileId = '' } = params
  const isSigned =
    typeof expires === 'string' &&
    typeof by === 'string' &&
    typeof signature === 'string' &&
    /^\d{1,12}$/.test(expires) &&
    isId('vlt', id) &&
    isId('fil', fileId) &&
    deps.fileLinks.check(signedText(id, fileId, { expires, by }), signature)
  if (!isSigned) throw unauthorized('the link’s signature is invalid')
  if (instantOf(Number(expires) * 1_000) <= deps.clock.now()) throw unauthorized('the link has expired')
  if ((await deps.endedReaders([by as Reader])).length > 0)
    throw unauthorized('the key or token that the link was signed for has ended')
  const owner = await findFileOwner(deps.db, id, fileId)
  if (owner === undefined || !deps.environments.includes(owner.environment)) throw fail('file-not-found')
  const { shareOwner, ...tenant } = owner
  return { tenant, actor: { kind: 'guest', guestId: `link:${fileId}` }, shareOwner }
}

/** Removes a file from a vault that is not sealed and frees its storage; the sweep deletes its blob. */
export function deleteFile(
  ctx: Pick<Ctx, 'clock' | 'db' | 'random' | 'tenant' | 'vaultNews'>,
  vaultId: VaultId,
  fileId: Id<'fil'>,
): Promise<void> {
  return ctx.db.tx(async (tx) => {
    const vault = await lockWritable(tx, ctx, vaultId)
    const file = await deleteFileRow(tx, ctx.tenant, vaultId, fileId)
    if (file === undefined) throw fail('file-not-found')
    await queueDeletion(tx, ctx.tenant, file.blobKey, ctx.clock.now())
    const { name, size, sha256 } = file
    const payload = { fileId, name, size, sha256 }
    await appendVaultEvent(tx, ctx, vault, { type: 'file.deleted', payload, growth: { files: -1, bytes: -size } })
    await releaseCounts(tx, ctx, { storageBytes: size })
  })
}

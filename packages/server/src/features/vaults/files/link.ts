import { instantOf, unixSeconds } from '../../../platform/clock.ts'
import type { Caller, Deps } from '../../../platform/ctx.ts'
import { unauthorized } from '../../../platform/http/authenticate.ts'
import { type Id, isId } from '../../../platform/ids.ts'
import type { GuestRequest } from '../../../platform/operation.ts'
import type { VaultId } from '../vault.ts'
import { fail } from './errors.ts'
import { findFileOwner } from './store.ts'

/** Lifetime of a link, in seconds. */
export const linkSeconds = 900

/**
 * Returns an address that opens one file of one vault for 15 minutes, for anyone who has it, without a header. It opens nothing
 * once the file or its vault is gone. If the caller's own access ends at `accessEnd`, the link ends then at the latest, so that
 * an expired token leaves no link that still works.
 */
export function fileUrl(
  ctx: Pick<Deps, 'baseUrl' | 'clock' | 'fileLinks'>,
  { vaultId, fileId }: { readonly vaultId: VaultId; readonly fileId: Id<'fil'> },
  accessEnd: Date | null = null,
): string {
  const longest = unixSeconds(ctx.clock.now()) + linkSeconds
  const expires = String(accessEnd === null ? longest : Math.min(longest, unixSeconds(accessEnd)))
  const query = new URLSearchParams({ expires, signature: ctx.fileLinks.sign(signedText(vaultId, fileId, expires)) })
  return `${ctx.baseUrl}/vaults/${vaultId}/files/${fileId}?${query}`
}

function signedText(vaultId: string, fileId: string, expires: string): string {
  return `${vaultId}/${fileId}/${expires}`
}

/** Returns a guest for a valid signature of the requested file; undefined if the request has no signature. */
export async function linkGuest(deps: Deps, { params, query }: GuestRequest): Promise<Caller | undefined> {
  const { expires, signature } = query
  if (expires === undefined && signature === undefined) return undefined
  const { id = '', fileId = '' } = params
  const isSigned =
    typeof expires === 'string' &&
    typeof signature === 'string' &&
    /^\d{1,12}$/.test(expires) &&
    isId('vlt', id) &&
    isId('fil', fileId) &&
    deps.fileLinks.check(signedText(id, fileId, expires), signature)
  if (!isSigned) throw unauthorized('the link’s signature is invalid')
  if (instantOf(Number(expires) * 1_000) <= deps.clock.now()) throw unauthorized('the link has expired')
  const tenant = await findFileOwner(deps.db, id, fileId)
  if (tenant === undefined || !deps.environments.includes(tenant.environment)) throw fail('file-not-found')
  return { tenant, actor: { kind: 'guest', guestId: `link:${fileId}` } }
}

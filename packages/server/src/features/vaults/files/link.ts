import { instantOf, unixSeconds } from '../../../platform/clock.ts'
import type { Deps } from '../../../platform/ctx.ts'
import { unauthorized } from '../../../platform/http/authenticate.ts'
import { type Id, isId } from '../../../platform/ids.ts'
import type { Guest, GuestRequest } from '../../../platform/operation.ts'
import type { VaultId } from '../vault.ts'
import { fail } from './errors.ts'
import { findFileOwner } from './store.ts'

/** How long a link opens its file. */
export const linkSeconds = 900

/**
 * An address that opens one file of one vault for a quarter of an hour, whoever has it, with no header. It opens nothing once the
 * file or its vault is gone. Where whoever asked has access until `accessEnd` alone, it ends then at the latest: a token that has lapsed
 * leaves nothing behind that still opens.
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

/** Whoever shows a link's signature, for the file that it was made for; undefined where none is shown. */
export async function linkGuest(deps: Deps, { params, query }: GuestRequest): Promise<Guest | undefined> {
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
  if (!isSigned) throw unauthorized('the link was not made here, or was changed')
  if (instantOf(Number(expires) * 1_000) <= deps.clock.now()) throw unauthorized('the link has expired')
  const tenant = await findFileOwner(deps.db, id, fileId)
  if (tenant === undefined || !deps.environments.includes(tenant.environment)) throw fail('file-not-found')
  return { tenant, actor: { kind: 'guest', guestId: `link:${fileId}` } }
}

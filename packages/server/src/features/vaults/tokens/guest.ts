import type { Ctx, Deps } from '../../../platform/ctx.ts'
import { unauthorized } from '../../../platform/http/authenticate.ts'
import { isId } from '../../../platform/ids.ts'
import type { Guest, GuestRequest } from '../../../platform/operation.ts'
import { findToken, findTokenById, openTicketRow, type TokenRow } from './store.ts'
import { tokenHashOf } from './tokens.ts'

const tokenPattern = /^vat_[A-Za-z0-9_-]{43}$/

/**
 * Whoever shows a vault's token in place of an API key, for reads of that vault (the `id` in the path); undefined where no
 * such token is shown. One of another vault, and one that has expired or is gone with its vault, is 401.
 */
export async function vaultGuest(deps: Deps, { params, headers }: GuestRequest): Promise<Guest | undefined> {
  const token = /^Bearer +(vat_[\x21-\x7e]{1,256}) *$/i.exec(headers.authorization ?? '')?.[1]
  if (token === undefined) return undefined
  if (!tokenPattern.test(token)) throw unauthorized('the vault token is malformed')
  const row = await findToken(deps.db, tokenHashOf(token))
  const now = deps.clock.now()
  if (row === undefined || row.kind !== 'token' || row.expiresAt <= now)
    throw unauthorized('the vault token is unknown or has expired')
  if (row.vaultId !== params.id) throw unauthorized('the vault token is for another vault')
  return guestOf(deps, row)
}

/**
 * The same for a stream of events, which also opens to a ticket in the address, once: the ticket is used up here, whatever
 * becomes of the stream.
 */
export async function streamGuest(deps: Deps, request: GuestRequest): Promise<Guest | undefined> {
  const { ticket } = request.query
  if (ticket === undefined) return vaultGuest(deps, request)
  const { id: vaultId = '' } = request.params
  const row =
    typeof ticket === 'string' && tokenPattern.test(ticket) && isId('vlt', vaultId)
      ? await openTicketRow(deps.db, { tokenHash: tokenHashOf(ticket), vaultId, now: deps.clock.now() })
      : undefined
  if (row === undefined) throw unauthorized('the ticket is unknown, used, expired or for another vault')
  return guestOf(deps, row)
}

function guestOf(deps: Deps, { id, organisationId, environment }: TokenRow): Guest {
  if (!deps.environments.includes(environment)) throw unauthorized('wrong environment for this deployment')
  return { tenant: { organisationId, environment }, actor: { kind: 'guest', guestId: id } }
}

/**
 * When what let the caller in ends, so that a stream ends with it: the expiry of a vault's token. Null for whoever has no such end:
 * an API key, and a ticket, which was used up when the stream began.
 */
export async function accessEndsAt(ctx: Pick<Ctx, 'db' | 'tenant' | 'actor' | 'clock'>): Promise<Date | null> {
  const { actor } = ctx
  if (actor.kind !== 'guest' || !isId('vat', actor.guestId)) return null
  const token = await findTokenById(ctx.db, ctx.tenant, actor.guestId)
  // Swept since it was shown: it has expired by now.
  if (token === undefined) return ctx.clock.now()
  return token.kind === 'token' ? token.expiresAt : null
}

import { instantOf } from '../../../platform/clock.ts'
import type { Caller } from '../../../platform/ctx.ts'
import { unauthorized } from '../../../platform/http/authenticate.ts'
import { isId } from '../../../platform/ids.ts'
import type { GuestRequest } from '../../../platform/operation.ts'
import type { Ctx, Deps } from '../ports.ts'
import { tokenSeconds } from './schema.ts'
import { findToken, findTokenById, openTicketRow, type TokenRow } from './store.ts'
import { tokenHashOf } from './tokens.ts'

/** The longest life of a stream that a ticket opened: as long as the longest vault token. */
const ticketStreamMs = tokenSeconds.atMost * 1_000

const tokenPattern = /^vat_[A-Za-z0-9_-]{43}$/

/**
 * Returns a guest for a vault's token that is used in place of an API key, for reads of that vault (the `id` in the path);
 * undefined if the request has no such token. A token of another vault, and one that has expired or is gone with its vault, is
 * 401.
 */
export async function vaultGuest(
  deps: Pick<Deps, 'clock' | 'db' | 'environments'>,
  { params, headers }: GuestRequest,
): Promise<Caller | undefined> {
  const token = /^Bearer +(vat_[\x21-\x7e]{1,256}) *$/i.exec(headers.authorization ?? '')?.[1]
  if (token === undefined) return undefined
  if (!tokenPattern.test(token)) throw unauthorized('the vault token is malformed')
  const now = deps.clock.now()
  const row = await findToken(deps.db, tokenHashOf(token), now)
  if (row === undefined || row.kind !== 'token' || row.expiresAt <= now)
    throw unauthorized('the vault token is unknown, revoked or expired')
  if (row.vaultId !== params.id) throw unauthorized('the vault token is for another vault')
  return guestOf(deps, row)
}

/**
 * Returns a guest for a stream of events, by a vault's token or, once, by a ticket in the address: the ticket is used up here,
 * whatever becomes of the stream.
 */
export async function streamGuest(
  deps: Pick<Deps, 'clock' | 'db' | 'environments'>,
  request: GuestRequest,
): Promise<Caller | undefined> {
  const { ticket } = request.query
  if (ticket === undefined) return vaultGuest(deps, request)
  const { id: vaultId = '' } = request.params
  const now = deps.clock.now()
  const streamEnd = instantOf(now.getTime() + ticketStreamMs)
  const row =
    typeof ticket === 'string' && tokenPattern.test(ticket) && isId('vlt', vaultId)
      ? await openTicketRow(deps.db, { tokenHash: tokenHashOf(ticket), vaultId, now, streamEnd })
      : undefined
  if (row === undefined) throw unauthorized('the ticket is unknown, used, revoked, expired or for another vault')
  return guestOf(deps, row)
}

function guestOf(deps: Pick<Deps, 'environments'>, { id, organisationId, environment, shareOwner }: TokenRow): Caller {
  if (!deps.environments.includes(environment)) throw unauthorized('wrong environment for this deployment')
  return { tenant: { organisationId, environment }, actor: { kind: 'guest', guestId: id }, shareOwner }
}

/** Returns when the caller's access ends, so that a stream ends with it: a token's or an opened ticket's end; null for others. */
export async function accessEndsAt(ctx: Pick<Ctx, 'db' | 'tenant' | 'actor' | 'clock'>): Promise<Date | null> {
  const { actor } = ctx
  if (actor.kind !== 'guest' || !isId('vat', actor.guestId)) return null
  // One that was swept since it was checked has expired.
  return (await findTokenById(ctx.db, ctx.tenant, actor.guestId))?.expiresAt ?? ctx.clock.now()
}

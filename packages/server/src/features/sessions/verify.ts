import { failToken } from './errors.ts'
import type { Ctx } from './ports.ts'
import type { Session, VerifySession } from './schema.ts'
import { isOver, shownSession } from './sessions.ts'
import { findSession, type SessionRow } from './store.ts'
import { isToken, sessionIdIn } from './token.ts'

/**
 * Verifies that a token grants access to a route, by the present state of the database: it is the session's current token,
 * unexpired, its payment has not failed, and host and wallet are those that were paid. Everything else is the same 402. It
 * changes nothing.
 */
export async function verifySession(ctx: Ctx, request: VerifySession): Promise<Session> {
  const sessionId = sessionIdIn(request.sessionToken)
  const session = sessionId && (await findSession(ctx.db, ctx.tenant, sessionId))
  const now = ctx.clock.now()
  if (session === undefined || !isToken(request.sessionToken, session.tokenHash)) throw failToken('session-not-found')
  if (isOver(session, now) || !isBoundTo(session, request)) throw failToken('session-not-found')
  return shownSession(session, now)
}

/** Whether host and wallet match; a value that the payment did not name matches any. */
function isBoundTo({ host, walletId }: SessionRow, request: VerifySession): boolean {
  const wallets: readonly string[] = [request.walletId, ...request.otherWalletIds]
  return host !== null && walletId !== null && host === request.host.toLowerCase() && wallets.includes(walletId)
}

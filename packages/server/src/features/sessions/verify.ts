import type { Ctx } from '../../platform/ctx.ts'
import { failToken } from './errors.ts'
import type { Session, VerifySession } from './schema.ts'
import { isOver, shownSession } from './sessions.ts'
import { findSession, type SessionRow } from './store.ts'
import { isToken, sessionIdIn } from './token.ts'

/**
 * Whether a token opens a route, by what the database says now: the session's token of this moment, before its end, whose
 * payment has not failed, for the host and a wallet that were paid. All else is the same 402. A look changes nothing.
 */
export async function verifySession(ctx: Ctx, request: VerifySession): Promise<Session> {
  const sessionId = sessionIdIn(request.sessionToken)
  const session = sessionId && (await findSession(ctx.db, ctx.tenant, sessionId))
  const now = ctx.clock.now()
  if (session === undefined || !isToken(request.sessionToken, session.tokenHash)) throw failToken('session-not-found')
  if (isOver(session, now) || !isBoundTo(session, request)) throw failToken('session-not-found')
  return shownSession(session, now)
}

/** What a payment did not say binds to nothing. */
function isBoundTo({ host, walletId }: SessionRow, request: VerifySession): boolean {
  const wallets: readonly string[] = [request.walletId, ...request.otherWalletIds]
  return host !== null && walletId !== null && host === request.host.toLowerCase() && wallets.includes(walletId)
}

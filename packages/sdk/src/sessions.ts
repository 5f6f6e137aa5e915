import { callUntyped, listUntyped } from './call.ts'
import type { Listing, PageQuery } from './paging.ts'
import { believe } from './payment-answers.ts'
import { isRecord } from './problem.ts'
import type { CallOptions, Send } from './transport.ts'

/** Access that one payment bought for several calls, with a vault. `expiresAt` is ISO 8601; from then on `isExpired` is true. */
export interface Session {
  readonly sessionId: string
  readonly vaultId: string
  readonly expiresAt: string
  readonly isExpired: boolean
}

export interface NewSession {
  readonly paymentId: string
  /** Seconds, 60 to 604800; a day when left out. */
  readonly expiresIn?: number | undefined
}

/** A session with its token, which this answer alone shows. Whoever has the token has the access: give it to the payer only. */
export interface OpenedSession extends Session {
  readonly sessionToken: string
}

/** A token as it came, and the route that it is to open: its host (with a port that is not the scheme's own) and the wallet that it sells for. */
export interface SessionCheck {
  readonly sessionToken: string
  readonly host: string
  readonly walletId: string
  readonly otherWalletIds?: readonly string[] | undefined
}

/** The operations on payment sessions. What access hangs on is checked member by member before it is believed. */
export function sessionsOf(send: Send) {
  return {
    /** Opens the session of a payment, or answers the one that it has with a new token; the token before it ends. */
    create: async (body: NewSession, options?: CallOptions): Promise<OpenedSession> =>
      believe(await send('POST', '/sessions', { ...options, body }), readOpenedSession),
    list: (query?: PageQuery, options?: CallOptions): Listing<Session> =>
      listUntyped(send, '/sessions', { ...options, query }),
    get: (sessionId: string, options?: CallOptions): Promise<Session> =>
      callUntyped(send, 'GET', '/sessions/{sessionId}', { ...options, params: { sessionId } }),
    /**
     * The session that a token opens there; throws `PaymentRefusedError` (402 `session-not-found`) when it opens nothing. A look, asked anew
     * each time: with an Idempotency-Key Purser would keep an answer for a day, also for each token that a stranger makes up.
     */
    verify: async (body: SessionCheck, options?: CallOptions): Promise<Session> =>
      believe(await send('POST', '/sessions/verify', { keyless: true, ...options, body }), readSession),
  }
}

function readSession(body: unknown): Session | undefined {
  if (!isRecord(body)) return undefined
  const { sessionId, vaultId, expiresAt, isExpired } = body
  if (typeof sessionId !== 'string' || typeof vaultId !== 'string') return undefined
  if (typeof expiresAt !== 'string' || Number.isNaN(Date.parse(expiresAt)) || typeof isExpired !== 'boolean')
    return undefined
  return { sessionId, vaultId, expiresAt, isExpired }
}

function readOpenedSession(body: unknown): OpenedSession | undefined {
  const session = readSession(body)
  const sessionToken = isRecord(body) ? body.sessionToken : undefined
  return session === undefined || typeof sessionToken !== 'string' ? undefined : { ...session, sessionToken }
}

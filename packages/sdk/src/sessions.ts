import { callUntyped, listUntyped } from './call.ts'
import type { Listing, PageQuery } from './paging.ts'
import { confirm } from './payment-responses.ts'
import { isRecord } from './problem.ts'
import type { CallOptions, Send } from './transport.ts'

/**
 * Access to several calls from one payment, with a vault. `expiresAt` is ISO 8601; from then on `isExpired` is true.
 */
export interface Session {
  readonly sessionId: string
  readonly vaultId: string
  readonly expiresAt: string
  readonly isExpired: boolean
}

export interface NewSession {
  readonly paymentId: string
  /** Seconds, 60 to 604800. Default: a day. */
  readonly expiresIn?: number | undefined
}

/** A session with its token, which no later response shows. The token grants access: give it to the payer only. */
export interface OpenedSession extends Session {
  readonly sessionToken: string
}

/** A session token with the route's host (including a non-default port) and wallet. */
export interface SessionCheck {
  readonly sessionToken: string
  readonly host: string
  readonly walletId: string
  readonly otherWalletIds?: readonly string[] | undefined
}

/** The operations on payment sessions. Responses that access depends on are validated. */
export function sessionsOf(send: Send) {
  return {
    /**
     * Opens the session of a payment. If there is one, returns it with a new token, which replaces the previous one.
     */
    create: async (body: NewSession, options?: CallOptions): Promise<OpenedSession> =>
      confirm(await send('POST', '/sessions', { ...options, body }), readOpenedSession),
    /** Sessions, newest first. */
    list: (query?: PageQuery, options?: CallOptions): Listing<Session> =>
      listUntyped(send, '/sessions', { ...options, query }),
    /** Returns a session. Throws `NotFoundError` for an unknown id. */
    get: (sessionId: string, options?: CallOptions): Promise<Session> =>
      callUntyped(send, 'GET', '/sessions/{sessionId}', { ...options, params: { sessionId } }),
    /**
     * Returns the session of a token for this route. Throws `PaymentRefusedError` (402 `session-not-found`) if there
     * is none. Sends no Idempotency-Key: Purser would store the response for a day, even for invented tokens.
     */
    verify: async (body: SessionCheck, options?: CallOptions): Promise<Session> =>
      confirm(await send('POST', '/sessions/verify', { keyless: true, ...options, body }), readSession),
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

import { createHash, timingSafeEqual } from 'node:crypto'
import type { z } from 'zod'
import { instantOf } from '../../platform/clock.ts'
import type { Tx } from '../../platform/db/db.ts'
import { defineErrors } from '../../platform/errors.ts'
import { isId, newId, type PaymentId } from '../../platform/ids.ts'
import { type Page, Reply } from '../../platform/operation.ts'
import type { Random } from '../../platform/random.ts'
import { type RecurringTask, repeatWhile } from '../../platform/recurring-task.ts'
import { openCursor, type PageQuery, pageOf } from '../../platform/wire.ts'
import { type BuyingPayment, linkPaymentToSession, lockBuyingPayment } from '../payments/index.ts'
import { createVaultIn, isPresent, markOver } from '../vaults/index.ts'
import type { Ctx, Deps } from './ports.ts'
import type { NewSession, OpenedSession, Session, SessionId, VerifySession } from './schema.ts'
import {
  findSession,
  findSessionOf,
  insertSession,
  listSessions,
  markRevoked,
  replaceToken,
  restoreSession,
  type SessionRow,
} from './store.ts'

/**
 * Opens the session of a payment, with its vault, in one transaction. The payment's row is locked, so that parallel requests
 * create one session, and only the last returned token is valid. A repeated request replaces the token of the same session; its
 * expiry does not change, unless the session was revoked: then its payment has settled after all, and it is opened again.
 */
export function openSession(ctx: Ctx, request: NewSession): Promise<OpenedSession | Reply> {
  return ctx.db.tx(async (tx) => {
    const payment = await lockBuyingPayment(tx, ctx, request.paymentId)
    const known = await findSessionOf(tx, ctx.tenant, payment.id)
    if (known === undefined) return makeSession(ctx, tx, payment, request.expiresIn)
    const opened = known.isRevoked
      ? await reopenSession(ctx, tx, known, { paymentId: payment.id, expiresIn: request.expiresIn })
      : await withNewToken(ctx, tx, known)
    return new Reply(200, opened)
  })
}

/**
 * Opens a session again that was revoked while its payment seemed to be unpaid. Its vault ended with it, unless it was persisted; a new one takes its
 * place.
 */
async function reopenSession(
  ctx: Ctx,
  tx: Tx,
  session: SessionRow,
  { paymentId, expiresIn }: { readonly paymentId: PaymentId; readonly expiresIn: number },
): Promise<OpenedSession> {
  const { id: sessionId } = session
  const sessionToken = newSessionToken(sessionId, ctx.random)
  const expiresAt = instantOf(ctx.clock.now().getTime() + expiresIn * 1_000)
  const isKept = await isPresent(tx, ctx, session.vaultId)
  const vaultId = isKept ? session.vaultId : (await createVaultIn(tx, ctx, { sessionId, paymentId })).id
  await restoreSession(tx, ctx.tenant, sessionId, { vaultId, tokenHash: hashOf(sessionToken), expiresAt })
  await linkPaymentToSession(tx, ctx.tenant, paymentId, { sessionId, vaultId })
  return { sessionId, vaultId, expiresAt, isExpired: false, sessionToken }
}

async function makeSession(ctx: Ctx, tx: Tx, payment: BuyingPayment, expiresIn: number): Promise<OpenedSession> {
  const sessionId = newId('sess', ctx)
  const sessionToken = newSessionToken(sessionId, ctx.random)
  const createdAt = ctx.clock.now()
  const { id: paymentId, host, walletId, payer } = payment
  const vault = await createVaultIn(tx, ctx, { sessionId, paymentId })
  const expiresAt = instantOf(createdAt.getTime() + expiresIn * 1_000)
  const binding = { host, walletId, payer, tokenHash: hashOf(sessionToken), expiresAt, createdAt }
  await insertSession(tx, ctx.tenant, { id: sessionId, paymentId, vaultId: vault.id, ...binding })
  await linkPaymentToSession(tx, ctx.tenant, paymentId, { sessionId, vaultId: vault.id })
  return { sessionId, vaultId: vault.id, expiresAt, isExpired: false, sessionToken }
}

async function withNewToken(
  ctx: Pick<Ctx, 'clock' | 'random' | 'tenant'>,
  tx: Tx,
  session: SessionRow,
): Promise<OpenedSession> {
  const sessionToken = newSessionToken(session.id, ctx.random)
  await replaceToken(tx, ctx.tenant, session.id, hashOf(sessionToken))
  return { ...shownSession(session, ctx.clock.now()), sessionToken }
}

export async function getSession(ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>, sessionId: SessionId): Promise<Session> {
  const session = await findSession(ctx.db, ctx.tenant, sessionId)
  if (session === undefined) throw fail('session-not-found')
  return shownSession(session, ctx.clock.now())
}

export async function pageOfSessions(
  ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>,
  query: z.output<typeof PageQuery>,
): Promise<Page<Session>> {
  const rows = await listSessions(ctx.db, ctx.tenant, { limit: query.limit, after: openCursor(query.cursor) })
  const page = pageOf(rows, query.limit, (row) => row.id)
  const now = ctx.clock.now()
  return { ...page, items: page.items.map((row) => shownSession(row, now)) }
}

/** Whether the session grants no access any more: it expired, or its payment ended without money or is refunded. */
function isOver({ expiresAt, isDead }: Pick<SessionRow, 'expiresAt' | 'isDead'>, now: Date): boolean {
  return isDead || expiresAt <= now
}

function shownSession(session: SessionRow, now: Date): Session {
  const { id: sessionId, vaultId, expiresAt } = session
  return { sessionId, vaultId, expiresAt, isExpired: isOver(session, now) }
}

/**
 * Verifies that a token grants access to a route, by the present state of the database: it is the session's current token,
 * unexpired, its payment has not failed, and host and wallet are those that were paid. Everything else is the same 402. It
 * changes nothing.
 */
export async function verifySession(
  ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>,
  request: VerifySession,
): Promise<Session> {
  const sessionId = sessionIdIn(request.sessionToken)
  const session = sessionId && (await findSession(ctx.db, ctx.tenant, sessionId))
  const now = ctx.clock.now()
  if (session === undefined || !isToken(request.sessionToken, session.tokenHash)) throw failToken('session-not-found')
  if (isOver(session, now) || !isBoundTo(session, request)) throw failToken('session-not-found')
  return shownSession(session, now)
}

/** Whether host and wallet match. A session whose payment did not name both matches no request. */
function isBoundTo({ host, walletId }: SessionRow, request: VerifySession): boolean {
  const wallets: readonly string[] = [request.walletId, ...request.otherWalletIds]
  return host !== null && walletId !== null && host === request.host.toLowerCase() && wallets.includes(walletId)
}

const secretPattern = /^[A-Za-z0-9_-]{43}$/
const nobody = new Uint8Array(32)

/**
 * Returns a session's token: its id, a dot, and 256 random bits in base64url. Its bearer has the access that was paid for.
 */
function newSessionToken(sessionId: SessionId, random: Random): string {
  return `${sessionId}.${Buffer.from(random.bytes(32)).toString('base64url')}`
}

/** Returns the session that a token names; undefined if the text cannot be a token. */
function sessionIdIn(token: string): SessionId | undefined {
  const dot = token.indexOf('.')
  const [sessionId, secret] = [token.slice(0, dot), token.slice(dot + 1)]
  return dot > 0 && isId('sess', sessionId) && secretPattern.test(secret) ? sessionId : undefined
}

/** Returns the stored hash of a token: SHA-256 of all of it. 256 random bits need no slower hash. */
function hashOf(token: string): Uint8Array {
  return createHash('sha256').update(token).digest()
}

/** Whether the token has the stored hash; in constant time. */
function isToken(token: string, stored: Uint8Array | null): boolean {
  return timingSafeEqual(hashOf(token), stored ?? nobody) && stored !== null
}

const title = 'Session Not Found'

export const fail = defineErrors({
  'session-not-found': {
    status: 404,
    title,
    detail: 'No such session.',
    causes: [
      'This organisation has no payment session with this id in this environment.',
      'A session’s token (`sessionToken`) was sent instead of its id.',
    ],
    fix: 'Take `sessionId` from the response of `POST /sessions`, or list them with `GET /sessions`.',
  },
})

/** One error for every reason why a token is refused, so that the response discloses nothing about sessions of others. */
export const failToken = defineErrors({
  'session-not-found': {
    status: 402,
    title,
    detail:
      'The sessionToken is not valid here: it is unknown, replaced, expired, revoked, or for another host or wallet. Pay again.',
    causes: [
      'The `sessionToken` is mistyped, or a repeated `POST /sessions` replaced it by another one.',
      'The session has expired or was revoked, or the payment that bought it did not settle.',
      'The `host` or wallet of this request is not the one for which the session was bought.',
    ],
    fix: 'Respond with a fresh 402 (`POST /payments/challenge`), as the middleware does: the payer pays and gets a new session. All causes have the same response, so that it discloses nothing about other sessions.',
  },
})

const most = 500

/**
 * Revokes the sessions of payments that failed or were voided, and ends their vaults: the hash of their token is deleted, and
 * their place in the quota is free again. They grant no access from the moment that the payment ended, since every verification
 * reads its status; this makes it permanent. Running it again changes nothing.
 */
const revokeUnpaid: RecurringTask<Deps> = {
  name: 'sessions.revoke-unpaid',
  everyMs: 30_000,
  run: (ctx) => repeatWhile(ctx, async () => (await revokeBatch(ctx)) === most),
}

/** Returns the number of payments that it visited, some of which may have had revoked sessions. */
function revokeBatch({ db, clock }: Pick<Ctx, 'db' | 'clock'>): Promise<number> {
  return db.tx(async (tx) => {
    const { visited, vaultIds } = await markRevoked(tx, clock.now(), most)
    await markOver(tx, vaultIds, clock.now())
    return visited
  })
}

export const sessionRecurring: readonly RecurringTask<Deps>[] = [revokeUnpaid]

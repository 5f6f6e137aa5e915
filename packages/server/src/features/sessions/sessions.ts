import type { z } from 'zod'
import { instantOf } from '../../platform/clock.ts'
import type { Tx } from '../../platform/db/db.ts'
import { newId } from '../../platform/ids.ts'
import { type Page, Reply } from '../../platform/operation.ts'
import { openCursor, type PageQuery, pageOf } from '../../platform/wire.ts'
import { type BuyingPayment, lockBuyingPayment, tieToSession } from '../payments/index.ts'
import { createVaultIn } from '../vaults/index.ts'
import { fail } from './errors.ts'
import type { Ctx } from './ports.ts'
import type { NewSession, OpenedSession, Session, SessionId } from './schema.ts'
import { findSession, findSessionOf, insertSession, listSessions, replaceToken, type SessionRow } from './store.ts'
import { hashOf, newSessionToken } from './token.ts'

/**
 * Opens the session of a payment, with its vault, in one transaction. The payment's row is locked, so that parallel requests
 * create one session, and only the last returned token is valid. A repeated request replaces the token of the same session; its
 * expiry does not change.
 */
export function openSession(ctx: Ctx, request: NewSession): Promise<OpenedSession | Reply> {
  return ctx.db.tx(async (tx) => {
    const payment = await lockBuyingPayment(tx, ctx, request.paymentId)
    const known = await findSessionOf(tx, ctx.tenant, payment.id)
    return known === undefined
      ? makeSession(ctx, tx, payment, request.expiresIn)
      : new Reply(200, await withNewToken(ctx, tx, known))
  })
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
  await tieToSession(tx, ctx, paymentId, { sessionId, vaultId: vault.id })
  return { sessionId, vaultId: vault.id, expiresAt, isExpired: false, sessionToken }
}

async function withNewToken(ctx: Ctx, tx: Tx, session: SessionRow): Promise<OpenedSession> {
  const sessionToken = newSessionToken(session.id, ctx.random)
  await replaceToken(tx, ctx.tenant, session.id, hashOf(sessionToken))
  return { ...shownSession(session, ctx.clock.now()), sessionToken }
}

export async function getSession(ctx: Ctx, sessionId: SessionId): Promise<Session> {
  const session = await findSession(ctx.db, ctx.tenant, sessionId)
  if (session === undefined) throw fail('session-not-found')
  return shownSession(session, ctx.clock.now())
}

export async function pageOfSessions(ctx: Ctx, query: z.output<typeof PageQuery>): Promise<Page<Session>> {
  const rows = await listSessions(ctx.db, ctx.tenant, { limit: query.limit, after: openCursor(query.cursor) })
  const page = pageOf(rows, query.limit, (row) => row.id)
  const now = ctx.clock.now()
  return { items: page.items.map((row) => shownSession(row, now)), next: page.next }
}

/** Whether the session grants no access any more: it expired, or its payment ended without money or is refunded. */
export function isOver({ expiresAt, isDead }: Pick<SessionRow, 'expiresAt' | 'isDead'>, now: Date): boolean {
  return isDead || expiresAt <= now
}

export function shownSession(session: SessionRow, now: Date): Session {
  const { id: sessionId, vaultId, expiresAt } = session
  return { sessionId, vaultId, expiresAt, isExpired: isOver(session, now) }
}

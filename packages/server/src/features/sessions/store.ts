import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import { isBelow, type ListedRows, listRows } from '../../platform/db/page.ts'
import { id, type PaymentId } from '../../platform/ids.ts'
import type { SessionId } from './schema.ts'

/**
 * `isDead`: the session is revoked, its payment ended without money (from the transaction that ends it), or refunds take the whole payment. If a
 * refund fails, the session is valid again. `isRevoked`: it was revoked because its payment ended without money.
 */
export const SessionRow = z.object({
  id: id('sess'),
  vaultId: id('vlt'),
  host: z.string().nullable(),
  walletId: z.string().nullable(),
  tokenHash: z.instanceof(Uint8Array).nullable(),
  expiresAt: z.date(),
  isDead: z.boolean(),
  isRevoked: z.boolean(),
})
export type SessionRow = z.output<typeof SessionRow>

export interface NewSessionRow {
  readonly id: SessionId
  readonly paymentId: PaymentId
  readonly vaultId: `vlt_${string}`
  readonly host: string | null
  readonly walletId: string | null
  readonly payer: string | null
  readonly tokenHash: Uint8Array
  readonly expiresAt: Date
  readonly createdAt: Date
}

const columns = sql`sessions.id, sessions.vault_id, sessions.host, sessions.wallet_id, sessions.token_hash, sessions.expires_at,
  sessions.revoked_at is not null or coalesce(payments.status in ('settlement_failed', 'voided')
  or (payments.refunded_raw > 0 and payments.refunded_raw >= payments.raw_amount), false) as is_dead,
  sessions.revoked_at is not null as is_revoked`
// A payment that was archived had been settled and not been refunded in full, or its session had expired.
const withPayment = sql`sessions left join payments on payments.id = sessions.payment_id`

function owned(tenant: Tenant) {
  return sql`sessions.organisation_id = ${tenant.organisationId} and sessions.environment = ${tenant.environment}`
}

export async function insertSession(tx: Tx, tenant: Tenant, session: NewSessionRow): Promise<void> {
  await tx.run(sql`
    insert into sessions (id, organisation_id, environment, payment_id, vault_id, host, wallet_id, payer, token_hash, expires_at, created_at)
    values (${session.id}, ${tenant.organisationId}, ${tenant.environment}, ${session.paymentId}, ${session.vaultId}, ${session.host},
      ${session.walletId}, ${session.payer}, ${session.tokenHash}, ${session.expiresAt}, ${session.createdAt})`)
}

export function findSession(db: Queryable, tenant: Tenant, sessionId: SessionId): Promise<SessionRow | undefined> {
  return db.maybeOne(
    SessionRow,
    sql`select ${columns} from ${withPayment} where ${owned(tenant)} and sessions.id = ${sessionId}`,
  )
}

/** Returns the session of a payment, which the caller has locked. */
export function findSessionOf(tx: Tx, tenant: Tenant, paymentId: PaymentId): Promise<SessionRow | undefined> {
  return tx.maybeOne(
    SessionRow,
    sql`select ${columns} from ${withPayment} where ${owned(tenant)} and sessions.payment_id = ${paymentId}`,
  )
}

/** Returns sessions, newest first, one more than the limit. */
export function listSessions(
  db: Queryable,
  tenant: Tenant,
  page: { readonly limit: number; readonly after: string | undefined },
): Promise<ListedRows<SessionRow>> {
  return listRows(
    db,
    SessionRow,
    page.limit,
    sql`
    select ${columns} from ${withPayment}
    where ${owned(tenant)} and ${isBelow(sql`sessions.id`, page.after)}
    order by sessions.id desc`,
  )
}

/** Replaces the token of a session that is not revoked. The caller has locked its payment. */
export async function replaceToken(tx: Tx, tenant: Tenant, sessionId: SessionId, tokenHash: Uint8Array): Promise<void> {
  const changed = await tx.run(sql`
    update sessions set token_hash = ${tokenHash}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${sessionId} and revoked_at is null`)
  if (changed !== 1) throw new Error('the token of a session was not replaced')
}

/** Ends the revocation of a session. The caller has locked its payment. */
export async function restoreSession(
  tx: Tx,
  tenant: Tenant,
  sessionId: SessionId,
  restored: Pick<NewSessionRow, 'vaultId' | 'tokenHash' | 'expiresAt'>,
): Promise<void> {
  const { vaultId, tokenHash, expiresAt } = restored
  const changed = await tx.run(sql`
    update sessions set revoked_at = null, vault_id = ${vaultId}, token_hash = ${tokenHash}, expires_at = ${expiresAt}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${sessionId} and revoked_at is not null`)
  if (changed !== 1) throw new Error('a session was not restored')
}

const Revoked = z.object({ visited: z.number(), vaultIds: z.array(id('vlt')) })

/**
 * Revokes the sessions of up to `most` payments that ended without money, of any tenant; returns the number of payments and the vaults of the sessions
 * that were valid until now. Each payment is visited once: it then leaves the index that finds the next.
 */
export function markRevoked(tx: Tx, now: Date, most: number): Promise<z.output<typeof Revoked>> {
  return tx.one(
    Revoked,
    sql`
    with ended as (
      select id, session_id from payments
      where session_id is not null and status in ('settlement_failed', 'voided') and not session_revoked
      order by id limit ${most} for no key update skip locked
    ), visited as (
      update payments set session_revoked = true where id = any(array(select id from ended))
    ), revoked as (
      update sessions set revoked_at = ${now}, token_hash = null, expires_at = least(expires_at, ${now})
      where id = any(array(select session_id from ended)) and revoked_at is null
      returning vault_id
    )
    select (select count(*)::integer from ended) as visited, array(select vault_id from revoked) as vault_ids`,
  )
}

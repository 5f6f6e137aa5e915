import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import { deleteExpired, type Sweep } from '../../platform/db/delete-expired.ts'
import { isBelow, type ListedRows, listRows } from '../../platform/db/page.ts'
import { type AccountId, type Id, id, type OrganisationId } from '../../platform/ids.ts'
import type { SessionInOrganisation } from '../../platform/reader.ts'
import type { Role } from '../../platform/roles.ts'
import { Role as RoleName } from '../organisations/index.ts'
import { shareOwnerSql } from '../plans/index.ts'

const SessionRow = z.object({
  sessionId: id('ssn'),
  accountId: id('acc'),
  authenticatedAt: z.date(),
  role: RoleName.nullable(),
  isLive: z.boolean(),
  isSuspended: z.boolean(),
  shareOwner: z.string(),
})

export interface FoundSession {
  readonly sessionId: Id<'ssn'>
  readonly accountId: AccountId
  readonly authenticatedAt: Date
  readonly role: Role | null
  readonly isLive: boolean
  readonly isSuspended: boolean
  readonly shareOwner: string
}

/** The session of a token, if it is valid at that instant, with its account and the account's role in the named organisation. */
export function findSession(
  db: Queryable,
  organisationId: OrganisationId | undefined,
  { token, now }: { readonly token: string; readonly now: Date },
): Promise<FoundSession | undefined> {
  return db.maybeOne(
    SessionRow,
    sql`
    select session."id" as session_id, session."createdAt" as authenticated_at, accounts.id as account_id, members.role,
      coalesce(members.is_live, false) as is_live,
      coalesce((select suspended_at is not null from organisations where organisations.id = members.organisation_id), false) as is_suspended,
      coalesce(${shareOwnerSql(sql`members.organisation_id`)}, accounts.id) as share_owner
    from auth."session" as session
    join accounts on accounts.user_id = session."userId"
    left join members on members.account_id = accounts.id and members.organisation_id = ${organisationId ?? null}
      and members.accepted_at is not null
    where session."token" = ${token} and session."expiresAt" > ${now}`,
  )
}

const UserRow = z.object({ id: id('usr'), email: z.string(), name: z.string(), emailVerified: z.boolean() })
export type UserRow = z.output<typeof UserRow>

export function findUser(db: Queryable, userId: string): Promise<UserRow | undefined> {
  return db.maybeOne(
    UserRow,
    sql`select "id", "email", "name", "emailVerified" as email_verified from auth."user" where "id" = ${userId}`,
  )
}

/**
 * Whether the account with this address is a member, is invited, or has signed in before. An account whose invitation was withdrawn is none of
 * these: it may sign in only where anybody may sign up. Case does not matter.
 */
export async function hasAccount(db: Queryable, email: string): Promise<boolean> {
  const row = await db.maybeOne(
    z.object({ id: id('acc') }),
    sql`
    select id from accounts where lower(email) = ${email.toLowerCase()}
      and (user_id is not null or exists (select from members where members.account_id = accounts.id))`,
  )
  return row !== undefined
}

const OwnedAccount = z.object({ id: id('acc'), userId: z.string().nullable() })

/** The account with this address, locked until the transaction ends. */
export function lockAccountOf(tx: Tx, email: string): Promise<z.output<typeof OwnedAccount> | undefined> {
  return tx.maybeOne(
    OwnedAccount,
    sql`select id, user_id from accounts where lower(email) = ${email.toLowerCase()} for no key update`,
  )
}

export function findAccountOfUser(db: Queryable, userId: string): Promise<{ readonly id: AccountId } | undefined> {
  return db.maybeOne(z.object({ id: id('acc') }), sql`select id from accounts where user_id = ${userId}`)
}

/** Joins an account to the user behind it. */
export async function markUser(tx: Tx, accountId: AccountId, userId: string): Promise<void> {
  await tx.run(sql`update accounts set user_id = ${userId} where id = ${accountId}`)
}

export interface NewLink {
  readonly tokenHash: Uint8Array
  /** In lower case. */
  readonly email: string
  /** The hash of the secret of the browser that requested it; null if none did. */
  readonly browserHash: Uint8Array | null
  readonly createdAt: Date
  readonly expiresAt: Date
}

export async function insertLink(db: Queryable, link: NewLink): Promise<void> {
  await db.run(sql`
    insert into auth.sign_in_links (token_hash, email, browser_hash, created_at, expires_at)
    values (${link.tokenHash}, ${link.email}, ${link.browserHash}, ${link.createdAt}, ${link.expiresAt})`)
}

/** Deletes a link that was not sent. */
export async function deleteLink(db: Queryable, tokenHash: Uint8Array): Promise<void> {
  await db.run(sql`delete from auth.sign_in_links where token_hash = ${tokenHash}`)
}

const LinkRow = z.object({ email: z.string(), browserHash: z.instanceof(Uint8Array).nullable() })

/** The link with this hash, if it can be used at that instant. */
export function findLink(
  db: Queryable,
  tokenHash: Uint8Array,
  now: Date,
): Promise<z.output<typeof LinkRow> | undefined> {
  return db.maybeOne(
    LinkRow,
    sql`select email, browser_hash from auth.sign_in_links where token_hash = ${tokenHash} and used_at is null and expires_at > ${now}`,
  )
}

/** Marks a link as used. Returns true for one of several concurrent calls. */
export async function markLinkUsed(db: Queryable, tokenHash: Uint8Array, now: Date): Promise<boolean> {
  const used = await db.run(sql`
    update auth.sign_in_links set used_at = ${now}
    where token_hash = ${tokenHash} and used_at is null and expires_at > ${now}`)
  return used === 1
}

const ListedSession = z.object({
  id: id('ssn'),
  createdAt: z.date(),
  expiresAt: z.date(),
  ipAddress: z.string().nullable(),
  userAgent: z.string().nullable(),
})
export type ListedSession = z.output<typeof ListedSession>

/** The sessions of an account that are good at that instant, newest first. */
export function listSessions(
  db: Queryable,
  accountId: AccountId,
  { now, limit, after }: { readonly now: Date; readonly limit: number; readonly after: string | undefined },
): Promise<ListedRows<ListedSession>> {
  return listRows(
    db,
    ListedSession,
    limit,
    sql`
    select session."id", session."createdAt" as created_at, session."expiresAt" as expires_at,
      session."ipAddress" as ip_address, session."userAgent" as user_agent
    from auth."session" as session join accounts on accounts.user_id = session."userId"
    where accounts.id = ${accountId} and session."expiresAt" > ${now} and ${isBelow(sql`session."id"`, after)}
    order by session."id" desc`,
  )
}

/** Counts the passkeys of an account's person. */
export async function countPasskeys(db: Queryable, accountId: AccountId): Promise<number> {
  const { count } = await db.one(
    z.object({ count: z.bigint() }),
    sql`
    select count(*) from auth."passkey" as passkey join accounts on accounts.user_id = passkey."userId" where accounts.id = ${accountId}`,
  )
  return Number(count)
}

/** Most sessions of a person. */
const sessionsMax = 100

/** Ends the oldest sessions of a person who has more than a hundred. */
export async function endOldestSessions(db: Queryable, userId: string): Promise<void> {
  await db.run(sql`
    delete from auth."session" where "id" in (
      select "id" from auth."session" where "userId" = ${userId} order by "createdAt" desc, "id" desc offset ${sessionsMax})`)
}

/** Ends a session of an account; false where the account has none with this id. */
export async function deleteSession(tx: Tx, accountId: AccountId, sessionId: Id<'ssn'>): Promise<boolean> {
  const ended = await tx.run(sql`
    delete from auth."session" where "id" = ${sessionId} and "userId" = (select user_id from accounts where id = ${accountId})`)
  return ended === 1
}

/** Forgets sessions and links that ended before an instant. */
export async function deleteExpiredSignIns(sweep: Sweep, before: Date): Promise<void> {
  const ended = sql`"expiresAt" < ${before}`
  await deleteExpired(sweep, { from: sql`auth."session"`, where: ended, orderBy: sql`"expiresAt"` })
  await deleteExpired(sweep, {
    from: sql`auth.sign_in_links`,
    where: sql`expires_at < ${before}`,
    orderBy: sql`expires_at`,
  })
}

/** Deletes other expired proofs. Anybody can create them without signing in, so all of them are deleted, however many there are. */
export async function deleteExpiredProofs(sweep: Sweep, before: Date): Promise<void> {
  const ended = sql`"expiresAt" < ${before}`
  await deleteExpired(sweep, { from: sql`auth."verification"`, where: ended, orderBy: sql`"expiresAt"` })
}

const SessionPlace = z.object({
  sessionId: id('ssn'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
})

/** Those of the sessions that have ended at that instant, or whose person no longer has access to that environment of the organisation. */
export function listEndedSessions(
  db: Queryable,
  sessions: readonly SessionInOrganisation[],
  now: Date,
): Promise<SessionInOrganisation[]> {
  return db.many(
    SessionPlace,
    sql`
    select given.session_id, given.organisation_id, given.environment
    from unnest(${sessions.map(({ sessionId }) => sessionId)}::text[], ${sessions.map(({ organisationId }) => organisationId)}::text[],
      ${sessions.map(({ environment }) => environment)}::text[]) as given (session_id, organisation_id, environment)
    where not exists (
      select from auth."session" as session join accounts on accounts.user_id = session."userId"
      join members on members.account_id = accounts.id and members.organisation_id = given.organisation_id and members.accepted_at is not null
        and (members.is_live or given.environment = 'test')
      where session."id" = given.session_id and session."expiresAt" > ${now})`,
  )
}

import { hash } from 'node:crypto'
import { z } from 'zod'
import { type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { deleteExpired, type Sweep } from '../../platform/db/delete-expired.ts'
import { lockNameOfText } from '../../platform/db/lock-name.ts'

/** The kind of a mail: a sign-in link, or a link to set a password. */
type MailKind = 'link' | 'reset'

export interface MailRow {
  readonly kind: MailKind
  /** In lower case. */
  readonly email: string
  readonly proof: string
}

/**
 * Records a mail as sent, unless a mail since `since` contains a link that can still be used. Returns whether it was recorded; of concurrent calls,
 * one is.
 */
export async function claimMail(
  tx: Tx,
  { kind, email, proof }: MailRow,
  { now, since }: { readonly now: Date; readonly since: Date },
): Promise<boolean> {
  // Locked by a statement of its own, so that the next one sees what another process committed meanwhile.
  await tx.run(
    sql`select pg_advisory_xact_lock(hashtextextended(${lockNameOfText('sign-in-mail', `${kind}/${email}`)}, 0))`,
  )
  const claimed = await tx.run(sql`
    insert into auth.sign_in_mails as sent (kind, email, proof, sent_at) values (${kind}, ${email}, ${proof}, ${now})
    on conflict (kind, email) do update set proof = excluded.proof, sent_at = excluded.sent_at
    where sent.sent_at <= ${since} or not exists (${usable(kind, now)})`)
  return claimed === 1
}

function usable(kind: MailKind, now: Date): Sql {
  return kind === 'link'
    ? sql`select from auth.sign_in_links where token_hash = decode(sent.proof, 'hex') and used_at is null and expires_at > ${now}`
    : sql`select from auth."verification" where "id" = sent.proof and "expiresAt" > ${now}`
}

/** Deletes the record of a mail that could not be sent, so that the next request sends one. */
export async function deleteMail(db: Queryable, { kind, email, proof }: MailRow): Promise<void> {
  await db.run(sql`delete from auth.sign_in_mails where kind = ${kind} and email = ${email} and proof = ${proof}`)
}

/** Returns the id of the `verification` row of a password link. better-auth 1.7.6 stores its SHA-256 (`processIdentifier`). */
export async function findResetProof(db: Queryable, token: string): Promise<string | undefined> {
  const identifier = hash('sha256', `reset-password:${token}`, 'base64url')
  const row = await db.maybeOne(
    z.object({ id: z.string() }),
    sql`select "id" from auth."verification" where "identifier" = ${identifier}`,
  )
  return row?.id
}

/** Forgets mails that were sent before an instant. */
export async function deleteExpiredMails(sweep: Sweep, before: Date): Promise<void> {
  await deleteExpired(sweep, { from: sql`auth.sign_in_mails`, where: sql`sent_at < ${before}`, orderBy: sql`sent_at` })
}

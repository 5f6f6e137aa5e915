import { instantOf } from '../../platform/clock.ts'
import { knownBrowserCookieOf, knownBrowserOf } from './known-browser.ts'
import { claimMail, deleteMail, findResetProof, type MailRow } from './mail-store.ts'
import type { Deps } from './ports.ts'
import type { SignInDeps, SignInOptions } from './sign-in-options.ts'

/** For how long a request of an unknown browser sends no further mail, while what the last one brought can be used; half the life of a link. */
const quietMs = 300_000

interface Request {
  readonly email: string
  readonly cookies: string | undefined
}

/**
 * Returns whether a mail is sent at a request. One of a browser in which the person signed in before is always sent. Strangers can have one
 * sent in five minutes, and never keep the person from one: whoever may not have another has one that works in the mailbox.
 */
export async function maySend(
  { db, clock, baseUrl }: Pick<Deps, 'db' | 'clock' | 'baseUrl'>,
  { secret }: Pick<SignInOptions, 'secret'>,
  mail: MailRow,
  { email, cookies }: Request,
): Promise<boolean> {
  if (knownBrowserOf(cookies, email, { cookieName: knownBrowserCookieOf(baseUrl), secret }) !== undefined) return true
  const now = clock.now()
  return db.tx((tx) => claimMail(tx, mail, { now, since: instantOf(now.getTime() - quietMs) }))
}

/** Sends the link to a new password, as `maySend` says. Never rejects. */
export async function sendResetMail(
  deps: SignInDeps,
  options: SignInOptions,
  { token, url, ...request }: Request & { readonly token: string; readonly url: string },
): Promise<void> {
  const { email } = request
  try {
    const proof = await findResetProof(deps.db, token)
    if (proof === undefined) throw new Error('a link to a new password is not stored')
    const mail = { kind: 'reset', email: email.toLowerCase(), proof } as const
    if (!(await maySend(deps, options, mail, request))) return
    const text = `${url}\n\nThe link works once, for an hour.`
    await sendOrForget(deps, mail, () => options.sendMail?.({ to: email, subject: 'Choose a new password', text }))
  } catch (err) {
    deps.log.warn({ err }, 'a link to a new password could not be sent')
  }
}

/** Sends a mail that was recorded as sent. Forgets it if it could not be sent. */
export async function sendOrForget(
  { db }: Pick<Deps, 'db'>,
  mail: MailRow,
  send: () => Promise<void> | undefined,
): Promise<void> {
  try {
    await send()
  } catch (error) {
    await deleteMail(db, mail)
    throw error
  }
}

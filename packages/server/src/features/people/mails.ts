import { instantOf } from '../../platform/clock.ts'
import { knownBrowserCookieOf, knownBrowserOf } from './known-browser.ts'
import { claimMail, deleteMail, findResetProof, type MailRow } from './mail-store.ts'
import type { Deps } from './ports.ts'
import type { SignInDeps, SignInOptions } from './sign-in-options.ts'

/** For this long after a mail, requests of unknown browsers send no other one while its link can be used; half the lifetime of a link. */
const quietMs = 300_000

interface Request {
  readonly email: string
  readonly cookies: string | undefined
}

/**
 * Returns whether a request sends a mail. A browser in which the person has signed in before always may. Unknown browsers may send one in five
 * minutes. A refused request never locks the person out, because the mailbox then contains a link that works.
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

/** Sends a password link if `maySend` allows it. Never rejects. */
export async function sendResetMail(
  deps: Pick<SignInDeps, 'baseUrl' | 'clock' | 'db' | 'log'>,
  options: SignInOptions,
  { token, url, ...request }: Request & { readonly token: string; readonly url: string },
): Promise<void> {
  const { email } = request
  try {
    const proof = await findResetProof(deps.db, token)
    if (proof === undefined) throw new Error('a password link is not stored')
    const mail = { kind: 'reset', email: email.toLowerCase(), proof } as const
    if (!(await maySend(deps, options, mail, request))) return
    const text = `${url}\n\nThe link works once, for an hour.`
    await sendOrForget(deps, mail, () => options.sendMail?.({ to: email, subject: 'Choose a new password', text }))
  } catch (err) {
    deps.log.warn({ err }, 'a password link could not be sent')
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

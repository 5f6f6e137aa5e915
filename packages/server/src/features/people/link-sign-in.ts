import type { AuthContext } from 'better-auth'
import { APIError, createAuthEndpoint } from 'better-auth/api'
import { setSessionCookie } from 'better-auth/cookies'
import { z } from 'zod'
import { equalInConstantTime } from '../../platform/constant-time.ts'
import { cookieAttributesOf, cookieValue, linkCookieOf } from './cookie.ts'
import { confirmationPage } from './link-page.ts'
import { hashOfToken, linkMs, newSecret, newSignInLink } from './links.ts'
import { maySend, sendOrForget } from './mails.ts'
import { addressHeader, type SignInDeps, type SignInOptions } from './sign-in-options.ts'
import { deleteLink, findLink, hasAccount, insertLink, markLinkUsed, type NewLink } from './store.ts'
import { limitStrangerMails } from './stranger-mails.ts'

/** A plugin of better-auth: one-time links, from the operator and by e-mail. */
export function linkSignIn(deps: SignInDeps, options: SignInOptions) {
  return { id: 'purser-links', endpoints: { openLink: openLink(deps, options), sendLink: sendLink(deps, options) } }
}

const LinkQuery = z.object({ token: z.string().max(200) })

/**
 * Signs in the user of a link, once, and redirects to the dashboard. A used or expired link redirects to the sign-in page. The link
 * proves the address, so a missing user is created. Anybody can lead a browser to a link of their own account, whose visitor would then work in
 * that account. So a link signs in at once only in the browser that requested it; in any other one a page asks first.
 */
function openLink(
  { db, clock, baseUrl }: Pick<SignInDeps, 'baseUrl' | 'clock' | 'db'>,
  { dashboardUrl }: SignInOptions,
) {
  const options = { method: ['GET' as const, 'POST' as const], query: LinkQuery, requireHeaders: true as const }
  return createAuthEndpoint('/link', options, async (ctx) => {
    const { internalAdapter } = ctx.context
    const tokenHash = hashOfToken(ctx.query.token)
    const link = await findLink(db, tokenHash, clock.now())
    const refused = `${dashboardUrl}/sign-in?error=link-not-valid`
    if (link === undefined) throw ctx.redirect(refused)
    const isConfirmed = ctx.method === 'POST' || hasRequested(link, cookieValue(cookiesOf(ctx), linkCookieOf(baseUrl)))
    if (!isConfirmed) return confirmationPage({ email: link.email, dashboardUrl })
    const user = await userOf(ctx.context.internalAdapter, link.email)
    // Last before the session, so that an earlier failure does not use the link up.
    if (!(await markLinkUsed(db, tokenHash, clock.now()))) throw ctx.redirect(refused)
    const session = await internalAdapter.createSession(user.id)
    await setSessionCookie(ctx, { session, user })
    throw ctx.redirect(dashboardUrl)
  })
}

/** Whether the browser with this secret requested the link. */
function hasRequested({ browserHash }: Pick<NewLink, 'browserHash'>, browser: string | undefined): boolean {
  return browserHash !== null && browser !== undefined && equalInConstantTime(browserHash, hashOfToken(browser))
}

function cookiesOf({ headers }: { readonly headers?: Headers | undefined }): string | undefined {
  return headers?.get('cookie') ?? undefined
}

type Users = Pick<AuthContext['internalAdapter'], 'findUserByEmail' | 'createUser'>

/** Returns the user with this address, and creates it if there is none. Two concurrent calls return one user. */
async function userOf(users: Users, email: string) {
  const find = async () => (await users.findUserByEmail(email))?.user
  const create = () => users.createUser({ email, emailVerified: true, name: '' }, { method: 'magic-link' })
  return (
    (await find()) ??
    create().catch(async (error: unknown) => {
      const made = await find()
      if (made === undefined) throw error
      return made
    })
  )
}

const LinkRequest = z.object({ email: z.email().max(254) })

const browserPattern = /^[\w-]{43}$/

/**
 * Sends a link to an address. Neither the response nor its duration reveals whether the address has an account. A cookie has the browser's secret,
 * which later requests keep, so that the links of all of them sign in at once in this browser.
 */
function sendLink(deps: SignInDeps, options: SignInOptions) {
  const { sendMail, isSignUpOpen } = options
  const strangers = limitStrangerMails(deps)
  return createAuthEndpoint('/sign-in/link', { method: 'POST', body: LinkRequest }, async (ctx) => {
    if (sendMail === undefined) throw new APIError('BAD_REQUEST', { code: 'EMAIL_NOT_CONFIGURED' })
    const { email } = ctx.body
    const cookies = cookiesOf(ctx)
    const cookie = linkCookieOf(deps.baseUrl)
    const known = cookieValue(cookies, cookie)
    const browser = known !== undefined && browserPattern.test(known) ? known : newSecret(deps.random)
    ctx.setCookie(cookie, browser, { ...cookieAttributesOf(deps.baseUrl), maxAge: linkMs / 1_000 })
    const send = async (): Promise<void> => {
      const address = ctx.headers?.get(addressHeader) ?? ''
      const isStranger = !(await hasAccount(deps.db, email))
      if (isStranger && !(isSignUpOpen && strangers.mayRequest(address))) return
      const { url, link } = newSignInLink(deps, { email, baseUrl: deps.baseUrl, browser })
      const mail = { kind: 'link', email: link.email, proof: Buffer.from(link.tokenHash).toString('hex') } as const
      // Stored before the mail is recorded, so that the record never names a link that is not there.
      await insertLink(deps.db, link)
      const isSent = (await maySend(deps, options, mail, { email, cookies })) && (!isStranger || strangers.maySend())
      // Without its link the record of a mail stops no other one.
      if (!isSent) return deleteLink(deps.db, link.tokenHash)
      const text = `${url}\n\nThe link works once, for ten minutes.`
      await sendOrForget(deps, mail, () => sendMail({ to: email, subject: 'Sign in', text }))
    }
    void send().catch((err: unknown) => deps.log.warn({ err }, 'a sign-in link could not be sent'))
    return ctx.json({ status: true })
  })
}

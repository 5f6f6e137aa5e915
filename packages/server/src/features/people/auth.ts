import { passkey } from '@better-auth/passkey'
import { APIError, betterAuth } from 'better-auth'
import { createAuthMiddleware } from 'better-auth/api'
import { genericOAuth } from 'better-auth/plugins'
import { Kysely, PostgresDialect } from 'kysely'
import { freshMs } from '../../platform/access.ts'
import { newId } from '../../platform/ids.ts'
import { accountOf } from './accounts.ts'
import { cookieAttributesOf, cookiePrefixOf } from './cookie.ts'
import { knownBrowserCookieOf, knownBrowserSeconds, knownBrowserValue } from './known-browser.ts'
import { linkSignIn } from './link-sign-in.ts'
import { sendResetMail } from './mails.ts'
import { addressHeader, type OidcIssuer, type SignInDeps, type SignInOptions } from './sign-in-options.ts'
import { endOldestSessions, findUser, hasAccount } from './store.ts'

const sessionSeconds = 7 * 86_400

/**
 * better-auth on the schema `auth`: passwords, passkeys, one-time links and OpenID Connect. It makes a user only for an address that was
 * verified, and a session only once the user has an account, which it links or creates.
 */
export function createAuth(deps: SignInDeps, options: SignInOptions) {
  const dashboard = new URL(options.dashboardUrl)
  return betterAuth({
    appName: 'Purser',
    baseURL: `${deps.baseUrl}/auth`,
    basePath: '/auth',
    secret: options.secret,
    telemetry: { enabled: false },
    logger: {
      log: (level, message, ...details) => deps.log[level]({ details: details.map(String) }, `sign-in: ${message}`),
    },
    database: {
      db: new Kysely<unknown>({ dialect: new PostgresDialect({ pool: options.pool }) }).withSchema('auth'),
      type: 'postgres',
      transaction: true,
    },
    trustedOrigins: [dashboard.origin],
    rateLimit: { enabled: false },
    // Errors that are not better-auth's own refusals are thrown to the caller of the handler.
    onAPIError: { throw: true },
    session: { expiresIn: sessionSeconds, disableSessionRefresh: true, freshAge: freshMs / 1_000 },
    // Otherwise anybody who can read the database or a copy of it could set the password of a person who requested a link.
    verification: { storeIdentifier: 'hashed' },
    account: { encryptOAuthTokens: true, accountLinking: { enabled: true, trustedProviders: [] } },
    emailAndPassword: passwordsOf(deps, options),
    plugins: [
      passkeysOf(dashboard),
      linkSignIn(deps, options),
      genericOAuth({ config: options.issuers.map(providerOf) }),
    ],
    advanced: advancedOf(deps),
    hooks: { after: createAuthMiddleware(afterSignIn(deps, options.secret)) },
    databaseHooks: databaseHooksOf(deps, options),
  })
}

function passwordsOf(deps: Pick<SignInDeps, 'baseUrl' | 'clock' | 'db' | 'log'>, options: SignInOptions) {
  return {
    enabled: true,
    disableSignUp: true,
    minPasswordLength: 12,
    maxPasswordLength: 128,
    revokeSessionsOnPasswordReset: true,
    ...(options.sendMail !== undefined && {
      // Not awaited: the duration of the response must not reveal whether the address has an account.
      sendResetPassword: async ({ user: { email }, url, token }, request) => {
        const cookies = request?.headers.get('cookie') ?? undefined
        void sendResetMail(deps, options, { email, url, token, cookies })
      },
    }),
  } satisfies Parameters<typeof betterAuth>[0]['emailAndPassword']
}

function advancedOf(deps: Pick<SignInDeps, 'baseUrl' | 'clock' | 'random'>) {
  return {
    cookiePrefix: cookiePrefixOf(deps.baseUrl),
    // By default both checks depend on NODE_ENV, and a reset could lead its token elsewhere.
    disableOriginCheck: false,
    disableCSRFCheck: false,
    useSecureCookies: false,
    defaultCookieAttributes: cookieAttributesOf(deps.baseUrl),
    ipAddress: { ipAddressHeaders: [addressHeader] },
    database: { validateSchema: false, generateId: ({ model }) => newId(model === 'session' ? 'ssn' : 'usr', deps) },
  } satisfies Parameters<typeof betterAuth>[0]['advanced']
}

function passkeysOf({ hostname, origin }: URL) {
  return passkey({
    rpID: hostname,
    rpName: 'Purser',
    origin,
    authenticatorSelection: { userVerification: 'required' },
    registration: { afterVerification: ({ verification }) => requireVerified(verification.registrationInfo) },
    authentication: { afterVerification: ({ verification }) => requireVerified(verification.authenticationInfo) },
  })
}

/** Ends the browser's earlier session, and sets the cookie by which the browser is known at the next sign-in. */
function afterSignIn(deps: Pick<SignInDeps, 'baseUrl' | 'random'>, secret: SignInOptions['secret']): AfterHook {
  return async (ctx) => {
    const { newSession } = ctx.context
    if (newSession === null) return
    await endEarlierSession(ctx, newSession.session.token)
    const value = knownBrowserValue(newSession.user.email, Buffer.from(deps.random.bytes(16)).toString('base64url'))
    const attributes = { ...cookieAttributesOf(deps.baseUrl), maxAge: knownBrowserSeconds }
    await ctx.setSignedCookie(knownBrowserCookieOf(deps.baseUrl), value, secret, attributes)
  }
}

/** Makes users only for verified addresses that may sign up, and sessions only once the user has an account, which it links or creates. */
function databaseHooksOf(deps: Pick<SignInDeps, 'clock' | 'db' | 'random'>, options: SignInOptions) {
  return {
    user: {
      create: {
        before: async ({ email, emailVerified }) => {
          if (emailVerified !== true) throw new APIError('FORBIDDEN', { code: 'EMAIL_NOT_VERIFIED' })
          if (!options.isSignUpOpen && !(await hasAccount(deps.db, email)))
            throw new APIError('FORBIDDEN', { code: 'SIGN_UP_CLOSED' })
        },
      },
    },
    session: {
      create: {
        before: async ({ userId }) => {
          const user = await findUser(deps.db, userId)
          if (user === undefined) throw new APIError('FORBIDDEN', { code: 'USER_NOT_FOUND' })
          await accountOf(deps, user)
        },
        after: ({ userId }) => endOldestSessions(deps.db, userId),
      },
    },
  } satisfies Parameters<typeof betterAuth>[0]['databaseHooks']
}

/** Without a PIN, fingerprint or face, a passkey would sign in anybody who has the device. */
function requireVerified(info: { readonly userVerified: boolean } | undefined): void {
  if (info?.userVerified !== true) throw new APIError('FORBIDDEN', { code: 'USER_NOT_VERIFIED' })
}

type AfterHook = Parameters<typeof createAuthMiddleware>[0]

/** Ends the browser's previous session at a new sign-in, so that no unused session remains that could be stolen. */
async function endEarlierSession(ctx: Parameters<AfterHook>[0], newToken: string): Promise<void> {
  const { authCookies, secret, internalAdapter } = ctx.context
  const earlier = await ctx.getSignedCookie(authCookies.sessionToken.name, secret)
  if (typeof earlier === 'string' && earlier !== newToken) await internalAdapter.deleteSession(earlier)
}

/**
 * Only `true` counts as verified, whatever else an issuer writes, and only of an address in ASCII: better-auth compares addresses in lower
 * case, and U+212A (the Kelvin sign) becomes a `k`, so that one mailbox would open the account of another.
 */
function providerOf({ name, issuer, clientId, clientSecret }: OidcIssuer) {
  return {
    providerId: name,
    clientId,
    clientSecret,
    discoveryUrl: `${issuer.replace(/\/+$/, '')}/.well-known/openid-configuration`,
    requireIdTokenVerification: true,
    scopes: ['openid', 'email', 'profile'],
    mapProfileToUser: ({ email, email_verified: isVerified }: Record<string, unknown>) => ({
      emailVerified: isVerified === true && typeof email === 'string' && /^[\x21-\x7e]+$/.test(email),
    }),
  }
}

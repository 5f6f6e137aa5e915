import type { People } from '../../platform/http/identify.ts'
import type { PublicPage } from '../../platform/http/server.ts'
import { cookieValue, openSignedCookie, sessionCookieOf } from './cookie.ts'
import { type AuthHandler, signInPages } from './pages.ts'
import type { Deps } from './ports.ts'
import type { SignInOptions } from './sign-in-options.ts'
import { findSession } from './store.ts'

/** The functions with which the HTTP server signs people in and identifies them by their cookies. */
export interface SignIn {
  readonly people: People
  readonly pages: readonly PublicPage[]
}

/**
 * Opens the sign-in of people. better-auth is loaded at the first request to `/auth`: it costs a start 250 ms of computing, and many processes
 * never sign anybody in.
 */
export function openSignIn(deps: Deps, options: SignInOptions): SignIn {
  const { secret, dashboardUrl } = options
  const people = createPeople(deps, { cookieName: sessionCookieOf(deps.baseUrl), secret, dashboardUrl })
  let loaded: Promise<AuthHandler> | undefined
  const handler: AuthHandler = async (request) => {
    loaded ??= import('./auth.ts').then(({ createAuth }) => createAuth(deps, options).handler)
    return (await loaded)(request)
  }
  return { people, pages: signInPages(deps, { handler, people, options }) }
}

/** Looks up people by their session cookies. */
interface PeopleOptions {
  readonly cookieName: string
  readonly secret: string
  readonly dashboardUrl: string
}

/**
 * Finds people by session cookies. Each request reads the session, the account and the membership in one statement, so that a session
 * that was ended and a member who was removed are refused from the next request on, by every process.
 */
function createPeople(
  { db, clock }: Pick<Deps, 'db' | 'clock'>,
  { cookieName, secret, dashboardUrl }: PeopleOptions,
): People {
  return {
    origin: new URL(dashboardUrl).origin,
    cookieOf: (cookies) => cookieValue(cookies, cookieName),
    async find(cookie, organisationId) {
      const token = openSignedCookie(cookie, secret)
      if (token === undefined) return undefined
      const session = await findSession(db, organisationId, { token, now: clock.now() })
      if (session === undefined) return undefined
      const { role, ...found } = session
      return { ...found, role: role ?? undefined }
    },
  }
}

import type { People } from '../../platform/http/identify.ts'
import type { PublicPage } from '../../platform/http/server.ts'
import { sessionCookieOf } from './cookie.ts'
import { type AuthHandler, signInPages } from './pages.ts'
import { createPeople } from './people.ts'
import type { Deps } from './ports.ts'
import type { SignInOptions } from './sign-in-options.ts'

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

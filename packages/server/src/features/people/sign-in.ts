import type { People } from '../../platform/http/identify.ts'
import type { PublicPage } from '../../platform/http/server.ts'
import { createAuth, sessionCookieOf } from './auth.ts'
import { signInPages } from './pages.ts'
import { createPeople } from './people.ts'
import type { Deps } from './ports.ts'
import type { SignInOptions } from './sign-in-options.ts'

/** The functions with which the HTTP server signs people in and identifies them by their cookies. */
export interface SignIn {
  readonly people: People
  readonly pages: readonly PublicPage[]
}

/** Opens the sign-in of people. The endpoints of OpenID Connect issuers are discovered in the background. */
export function openSignIn(deps: Deps, options: SignInOptions): SignIn {
  const { secret, dashboardUrl } = options
  const people = createPeople(deps, { cookieName: sessionCookieOf(deps.baseUrl), secret, dashboardUrl })
  const { handler } = createAuth(deps, options)
  return { people, pages: signInPages(deps, { handler, people, options }) }
}

import type { People } from '../../platform/http/identify.ts'
import { cookieValue, openSignedCookie } from './cookie.ts'
import type { Deps } from './ports.ts'
import { findSession } from './store.ts'

/** Looks up people by their session cookies. */
export interface PeopleOptions {
  readonly cookieName: string
  readonly secret: string
  readonly dashboardUrl: string
}

/**
 * Finds people by session cookies. Each request reads the session, the account and the membership in one statement, so that a session
 * that was ended and a member who was removed are refused from the next request on, by every process.
 */
export function createPeople(
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

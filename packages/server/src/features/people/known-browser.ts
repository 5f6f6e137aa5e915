import { hash } from 'node:crypto'
import { cookiePrefixOf, cookieValue, openSignedCookie } from './cookie.ts'

/** Seconds for which a browser is known after a sign-in. */
export const knownBrowserSeconds = 180 * 86_400

/** The name of the cookie of a browser in which somebody signed in. */
export function knownBrowserCookieOf(baseUrl: string): string {
  return `${cookiePrefixOf(baseUrl)}.known_browser`
}

/** The content of the cookie, before it is signed. `browserId` distinguishes the browsers of one e-mail address. */
export function knownBrowserValue(email: string, browserId: string): string {
  return `known:${nameOf(email)}:${browserId}`
}

/** The name and the secret of the cookie. */
export interface KnownBrowserCookie {
  readonly cookieName: string
  readonly secret: string
}

/**
 * Returns the identity of the browser that sent these cookies, if it has signed in with the e-mail address before. It grants no access: it only
 * selects the rate limit.
 */
export function knownBrowserOf(
  cookies: string | undefined,
  email: string,
  browser: KnownBrowserCookie,
): string | undefined {
  const value = knownValueOf(cookies, browser)
  return value?.startsWith(`known:${nameOf(email)}:`) === true ? value : undefined
}

/** Returns a name of the person who has signed in before, with any e-mail address, in the browser that sent these cookies. All browsers of a person have one name. */
export function personOfBrowser(cookies: string | undefined, browser: KnownBrowserCookie): string | undefined {
  return knownValueOf(cookies, browser)?.split(':', 2).join(':')
}

function knownValueOf(cookies: string | undefined, { cookieName, secret }: KnownBrowserCookie): string | undefined {
  const cookie = cookieValue(cookies, cookieName)
  const value = cookie === undefined ? undefined : openSignedCookie(cookie, secret)
  return value?.startsWith('known:') === true ? value : undefined
}

function nameOf(email: string): string {
  return hash('sha256', email.toLowerCase(), 'base64url')
}

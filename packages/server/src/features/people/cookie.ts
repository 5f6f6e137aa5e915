import { createHmac } from 'node:crypto'
import { equalInConstantTime } from '../../platform/constant-time.ts'

/** The prefix of every cookie's name. Over HTTPS it is `__Host-`, which binds the cookie to this host (RFC 6265bis, section 4.1.3.2). */
export function cookiePrefixOf(baseUrl: string): string {
  return baseUrl.startsWith('https://') ? '__Host-purser' : 'purser'
}

/** The name of the session's cookie. */
export function sessionCookieOf(baseUrl: string): string {
  return `${cookiePrefixOf(baseUrl)}.session_token`
}

/** The name of the cookie of a browser that requested a sign-in link. */
export function linkCookieOf(baseUrl: string): string {
  return `${cookiePrefixOf(baseUrl)}.link_browser`
}

/** The attributes of every cookie. */
export function cookieAttributesOf(baseUrl: string) {
  return { secure: baseUrl.startsWith('https://'), httpOnly: true, sameSite: 'lax', path: '/' } as const
}

/** The value of a cookie in a Cookie header, decoded; undefined where it is not there or not decodable. */
export function cookieValue(header: string | undefined, name: string): string | undefined {
  const cookies = header ?? ''
  const sought = `${name}=`
  for (let at = cookies.indexOf(sought); at !== -1; at = cookies.indexOf(sought, at + sought.length)) {
    if (!beginsCookie(cookies, at)) continue
    const from = at + sought.length
    const end = cookies.indexOf(';', from)
    try {
      return decodeURIComponent(cookies.slice(from, end === -1 ? undefined : end).trim())
    } catch {
      return undefined
    }
  }
  return undefined
}

/** Most cookies of the service that are read of one header. */
const ownMax = 16

/**
 * The service's own cookies of a Cookie header, each as `cookieValue` reads it; undefined where there is none. For a reader with a parser of its own, which
 * may take the quotes off a value or other spaces off a name, and so find a session where the service finds none.
 */
export function ownCookies(header: string | undefined, prefix: string): string | undefined {
  const cookies = header ?? ''
  const names = new Set<string>()
  for (let at = cookies.indexOf(prefix); at !== -1; at = cookies.indexOf(prefix, at + prefix.length)) {
    const name = /^[\w.-]{1,64}(?==)/.exec(cookies.slice(at, at + 65))?.[0]
    if (name !== undefined && names.size < ownMax) names.add(name)
  }
  const own = [...names].flatMap((name) => {
    const value = cookieValue(cookies, name)
    return value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`]
  })
  return own.length === 0 ? undefined : own.join('; ')
}

/** Whether a cookie begins at this place: nothing but spaces is before it. */
function beginsCookie(cookies: string, at: number): boolean {
  let before = at - 1
  while (cookies[before] === ' ' || cookies[before] === '\t') before -= 1
  return before < 0 || cookies[before] === ';'
}

/**
 * The value inside a cookie that better-auth signed: `<value>.<base64 HMAC-SHA256>`. Undefined where the signature is another.
 * Source: better-call 1.4.0, `signCookieValue`.
 */
export function openSignedCookie(cookie: string, secret: string): string | undefined {
  const at = cookie.lastIndexOf('.')
  if (at < 1) return undefined
  const value = cookie.slice(0, at)
  const expected = createHmac('sha256', secret).update(value).digest()
  const given = Buffer.from(cookie.slice(at + 1), 'base64')
  return equalInConstantTime(expected, given) ? value : undefined
}

/** Most characters of a URL's authority: a host name of 253 characters (RFC 1035), a colon and a port. */
const authorityLengthMax = 259
/** Most characters of a URL that no narrower limit applies to. */
const lengthMax = 2_048

/** Scheme and authority as the URL parser reads them, after it has removed tabs and line breaks (WHATWG URL, section 4.4). */
const beginning = /^[\x00-\x20]*[a-z][a-z0-9+.-]*:[/\\]*([^/\\?#]*)/i

/**
 * Parses a caller's absolute URL; undefined if it is none, is too long, or its authority is longer than a host name can be. The lengths are compared
 * before the URL is parsed: the time that a host with other characters than ASCII takes grows with the square of its length.
 */
export function parseUrl(text: string): URL | undefined {
  if (text.length > lengthMax) return undefined
  const authority = beginning.exec(text.replace(/[\t\n\r]/g, ''))?.[1] ?? ''
  if (authority.length > authorityLengthMax) return undefined
  return URL.parse(text) ?? undefined
}

/** Whether the text is a URL with http or https that `parseUrl` accepts. */
export function isWebUrl(text: string): boolean {
  return /^https?:$/.test(parseUrl(text)?.protocol ?? '')
}

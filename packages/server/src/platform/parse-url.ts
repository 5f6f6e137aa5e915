/** Most characters of a URL's authority: a host name of 253 characters (RFC 1035), a colon and a port. */
const authorityLengthMax = 259
/** Most characters of a URL that no narrower limit applies to. */
const lengthMax = 2_048

/** Most characters of the address of a redirect, which may be signed. */
const redirectLengthMax = 16_384

/** Scheme, if there is one, and authority as the URL parser reads them, after it has removed tabs and line breaks (WHATWG URL, section 4.4). */
const beginning = /^[\x00-\x20]*(?:[a-z][a-z0-9+.-]*:[/\\]*|[/\\]{2,})([^/\\?#]*)/i

/**
 * Parses a caller's absolute URL; undefined if it is none, is too long, or its authority is longer than a host name can be. The lengths are compared
 * before the URL is parsed: the time that a host with other characters than ASCII takes grows with the square of its length.
 */
export function parseUrl(text: string): URL | undefined {
  return text.length > lengthMax ? undefined : parseShort(text)
}

/** Parses the `Location` of a redirect, as `parseUrl`; it may be relative. */
export function parseRedirect(location: string, from: URL): URL | undefined {
  return location.length > redirectLengthMax ? undefined : parseShort(location, from)
}

function parseShort(text: string, base?: URL): URL | undefined {
  const authority = beginning.exec(text.replace(/[\t\n\r]/g, ''))?.[1] ?? ''
  if (authority.length > authorityLengthMax) return undefined
  return URL.parse(text, base?.href) ?? undefined
}

/** Whether the text is a URL with http or https that `parseUrl` accepts. */
export function isWebUrl(text: string): boolean {
  return /^https?:$/.test(parseUrl(text)?.protocol ?? '')
}

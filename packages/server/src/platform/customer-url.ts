import { isIP } from 'node:net'
import { privateRanges, rangeOfAddress } from './address-ranges.ts'

/** How far a URL that a customer gave may lead: to public hosts over https, or, for development, into the deployment's own networks. */
export type Reach = 'public' | 'public-and-private'

/** Why a URL that a customer gave is not one to be asked. */
export type UrlRefusal =
  | 'url-malformed'
  | 'url-too-long'
  | 'scheme-refused'
  | 'credentials-refused'
  | 'port-refused'
  | 'host-refused'
  | 'address-refused'

/** The longest URL that is looked at, in characters. */
export const urlLengthMax = 2_048

/** Where receivers listen; anything else could make this service knock at doors of other people that speak no HTTP. */
const publicPorts: ReadonlySet<string> = new Set(['', '80', '443', '4443', '8080', '8443', '9443', '10443'])

/** Names that never lead to the public net: RFC 6761, RFC 6762, RFC 7686, RFC 8375, and ICANN's resolution on `.internal`. */
const localNames = /(?:^|\.)(?:localhost|local|internal|intranet|lan|home\.arpa|onion|invalid)$/

/**
 * A URL that a customer gave, parsed, or why it is refused. To be asked when it is stored, for the customer's sake, and again before
 * every use: the rules may have changed. It says nothing of what a name leads to; that is known only once it is looked up.
 */
export function parseCustomerUrl(text: string, reach: Reach): URL | UrlRefusal {
  if (text.length > urlLengthMax) return 'url-too-long'
  if (/[\x00-\x20\x7f\\]/.test(text) || !URL.canParse(text)) return 'url-malformed'
  if (!/^https?:/i.test(text)) return 'scheme-refused'
  if (!/^https?:\/\//i.test(text)) return 'url-malformed'
  const url = new URL(text)
  if (url.username !== '' || url.password !== '' || /^[^/]*\/\/[^/?#]*@/.test(text)) return 'credentials-refused'
  return whyNotHost(url, reach) ?? url
}

/** The name or address of a URL, without the brackets of IPv6. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '')
}

/** Whether an address may be connected to. */
export function isReachable(address: string, reach: Reach): boolean {
  const range = rangeOfAddress(address)
  return range === undefined || (reach === 'public-and-private' && privateRanges.has(range))
}

function whyNotHost(url: URL, reach: Reach): UrlRefusal | undefined {
  const host = hostOf(url)
  if (isIP(host) !== 0 && !isReachable(host, reach)) return 'address-refused'
  if (host.endsWith('.')) return 'host-refused'
  if (reach === 'public-and-private') return undefined
  if (url.protocol !== 'https:') return 'scheme-refused'
  if (isIP(host) === 0 && (!host.includes('.') || localNames.test(host))) return 'host-refused'
  return publicPorts.has(url.port) ? undefined : 'port-refused'
}

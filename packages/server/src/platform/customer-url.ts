import { isIP } from 'node:net'
import { privateRanges, rangeOfAddress } from './address-ranges.ts'
import { parseUrl } from './parse-url.ts'

/** The hosts to which a customer's URL may lead: public ones over https, or, for development, also those of the deployment's own networks. */
export type Reach = 'public' | 'public-and-private'

/** The rule for URLs of customers in this deployment. */
export interface CustomerUrls {
  readonly reach: Reach
  /** Hosts of the deployment's own servers, which may admit the service by its network address: no URL of a customer may lead there. */
  readonly ownHosts?: ReadonlySet<string> | undefined
}

/** The reason why a customer's URL is refused. */
export type UrlRefusal =
  | 'url-malformed'
  | 'url-too-long'
  | 'scheme-refused'
  | 'credentials-refused'
  | 'port-refused'
  | 'host-refused'
  | 'address-refused'

/** Longest accepted URL, in characters. */
export const urlLengthMax = 2_048

/** Ports on which receivers listen; any other could make this service connect to foreign services that are not HTTP. */
const publicPorts: ReadonlySet<string> = new Set(['', '80', '443', '4443', '8080', '8443', '9443', '10443'])

/** Names that never resolve to public hosts: RFC 6761, RFC 6762, RFC 7686, RFC 8375, and ICANN's resolution on `.internal`. */
const localNames = /(?:^|\.)(?:localhost|local|internal|intranet|lan|home\.arpa|onion|invalid)$/

/**
 * Parses a customer's URL, or returns why it is refused. Call it when the URL is stored, to report the fault to the customer, and again
 * before every use, since the rules may have changed. It does not resolve the name; the addresses are checked at look-up. The names of the
 * deployment's own hosts are enough to refuse them: over HTTPS the certificate of the server must have the name that the URL has.
 */
export function parseCustomerUrl(text: string, urls: CustomerUrls): URL | UrlRefusal {
  if (text.length > urlLengthMax) return 'url-too-long'
  const url = parseUrl(text)
  if (/[\x00-\x20\x7f\\]/.test(text) || url === undefined) return 'url-malformed'
  if (!/^https?:/i.test(text)) return 'scheme-refused'
  if (!/^https?:\/\//i.test(text)) return 'url-malformed'
  if (url.username !== '' || url.password !== '' || /^[^/]*\/\/[^/?#]*@/.test(text)) return 'credentials-refused'
  return whyNotHost(url, urls) ?? url
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

function whyNotHost(url: URL, { reach, ownHosts }: CustomerUrls): UrlRefusal | undefined {
  const host = hostOf(url)
  if (isIP(host) !== 0 && !isReachable(host, reach)) return 'address-refused'
  if (host.endsWith('.')) return 'host-refused'
  if (reach === 'public-and-private') return undefined
  if (url.protocol !== 'https:') return 'scheme-refused'
  if (ownHosts?.has(host)) return 'host-refused'
  if (isIP(host) === 0 && (!host.includes('.') || localNames.test(host))) return 'host-refused'
  return publicPorts.has(url.port) ? undefined : 'port-refused'
}

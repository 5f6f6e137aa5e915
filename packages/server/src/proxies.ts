import { isIPv4, isIPv6 } from 'node:net'

/** Most proxies in a row. */
const hopsMax = 16

/**
 * Parses which proxies add to X-Forwarded-For: their number, or their networks separated by commas; false for none, undefined for any other
 * text. There is no value that trusts every address: then a caller would choose its own address.
 *
 * @example parseProxies('1') // 1
 * @example parseProxies('10.0.0.0/8,fd00::/8') // ['10.0.0.0/8', 'fd00::/8']
 */
export function parseProxies(text: string): false | number | readonly string[] | undefined {
  if (text === '' || text === 'false' || text === '0') return false
  if (/^\d{1,2}$/.test(text)) return Number(text) <= hopsMax ? Number(text) : undefined
  const networks = text.split(',').map((part) => part.trim())
  return networks.every(isNetwork) ? networks : undefined
}

/** An address, or a network that is smaller than all addresses. */
function isNetwork(text: string): boolean {
  const [address = '', bits, ...more] = text.split('/')
  if (more.length > 0) return false
  const size = isIPv4(address) ? 32 : isIPv6(address) ? 128 : 0
  if (bits === undefined) return size > 0
  return /^\d{1,3}$/.test(bits) && Number(bits) >= 1 && Number(bits) <= size
}

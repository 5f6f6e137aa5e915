/**
 * Returns what a limit per address counts: an IPv4 address, or the /64 of an IPv6 address, which one host has to itself. An IPv4 address
 * that is mapped into IPv6 is the IPv4 address. Some proxies forward the port too, which is another one for each connection.
 *
 * @example
 * addressBlock('2001:db8:1:2::7') // '2001:db8:1:2::/64'
 */
export function addressBlock(forwarded: string): string {
  const ip = /^\[([^\]]*)\](?::\d+)?$/.exec(forwarded)?.[1] ?? /^([\d.]+):\d+$/.exec(forwarded)?.[1] ?? forwarded
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(ip)?.[1]
  if (mapped !== undefined) return mapped
  if (!ip.includes(':')) return ip
  const [head = '', tail] = (ip.split('%')[0] ?? '').split('::')
  const first = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - first.length - last.length)
  const groups = [...first, ...Array<string>(zeros).fill('0'), ...last].slice(0, 4)
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':')}::/64`
}

/**
 * Returns the addresses that one customer of a provider may have: the /24 of an IPv4 address, or the /48 of an IPv6 address, which has 65,536 blocks.
 *
 * @example
 * addressSite('2001:db8:1:2::7') // '2001:db8:1::/48'
 * addressSite('203.0.113.7') // '203.0.113.0/24'
 */
export function addressSite(forwarded: string): string {
  const block = addressBlock(forwarded)
  if (block.includes(':')) return `${block.split(':').slice(0, 3).join(':')}::/48`
  return `${block.split('.').slice(0, 3).join('.')}.0/24`
}

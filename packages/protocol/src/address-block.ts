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

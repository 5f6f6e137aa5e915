import { isIPv4, isIPv6 } from 'node:net'

/**
 * What an address is for, where it is not a public host's. `cloud` are the addresses by which a machine asks its cloud for its own
 * credentials; `tunnel` those that carry an IPv4 address inside (NAT64, 6to4, Teredo, IPv4-compatible), by which a private one
 * could be reached unseen; `unallocated` is whatever nobody has been given.
 */
export type AddressRange =
  | 'not-an-address'
  | 'cloud'
  | 'loopback'
  | 'private'
  | 'carrier'
  | 'unspecified'
  | 'link-local'
  | 'multicast'
  | 'documentation'
  | 'benchmarking'
  | 'protocol'
  | 'tunnel'
  | 'reserved'
  | 'unallocated'

/** Those that a deployment may open for development: hosts of its own networks, and never what hands out credentials. */
export const privateRanges: ReadonlySet<AddressRange> = new Set(['loopback', 'private', 'carrier'])

interface Range {
  readonly first: bigint
  /** How many bits follow those that the range fixes. */
  readonly freeBits: bigint
  readonly name: AddressRange
}

/** IANA IPv4 Special-Purpose Address Registry (RFC 6890); what clouds keep for themselves stands first. */
const rangesV4 = rangesOf([
  ['168.63.129.16/32', 'cloud'],
  ['100.100.100.200/32', 'cloud'],
  ['192.0.0.192/32', 'cloud'],
  ['169.254.0.0/16', 'link-local'],
  ['127.0.0.0/8', 'loopback'],
  ['10.0.0.0/8', 'private'],
  ['172.16.0.0/12', 'private'],
  ['192.168.0.0/16', 'private'],
  ['100.64.0.0/10', 'carrier'],
  ['0.0.0.0/8', 'unspecified'],
  ['192.0.0.0/24', 'protocol'],
  ['192.0.2.0/24', 'documentation'],
  ['198.51.100.0/24', 'documentation'],
  ['203.0.113.0/24', 'documentation'],
  ['192.31.196.0/24', 'protocol'],
  ['192.52.193.0/24', 'protocol'],
  ['192.175.48.0/24', 'protocol'],
  ['192.88.99.0/24', 'tunnel'],
  ['198.18.0.0/15', 'benchmarking'],
  ['224.0.0.0/4', 'multicast'],
  ['240.0.0.0/4', 'reserved'],
])

/** IANA IPv6 Special-Purpose Address Registry; what none of them covers must lie in the one block that hosts are numbered from. */
const rangesV6 = rangesOf([
  ['fd00:ec2::/32', 'cloud'],
  ['fd20:ce::254/128', 'cloud'],
  ['fd00:c1::a9fe:a9fe/128', 'cloud'],
  ['fd00:42::42/128', 'cloud'],
  ['::1/128', 'loopback'],
  ['::/128', 'unspecified'],
  ['fc00::/7', 'private'],
  ['fec0::/10', 'private'],
  ['fe80::/10', 'link-local'],
  ['ff00::/8', 'multicast'],
  ['::/96', 'tunnel'],
  ['::ffff:0:0:0/96', 'tunnel'],
  ['64:ff9b::/96', 'tunnel'],
  ['64:ff9b:1::/48', 'tunnel'],
  ['2001::/32', 'tunnel'],
  ['2002::/16', 'tunnel'],
  ['2001:2::/48', 'benchmarking'],
  ['2001:db8::/32', 'documentation'],
  ['3fff::/20', 'documentation'],
  ['2001::/23', 'protocol'],
  ['2620:4f:8000::/48', 'protocol'],
  ['100::/64', 'reserved'],
  ['5f00::/16', 'reserved'],
])

/** Global unicast, the only block of which registries hand out addresses for hosts (RFC 4291 section 2.5.4). */
const allocatedV6 = rangeOf(['2000::/3', 'unallocated'])

/** `::ffff:a.b.c.d`: an IPv4 address in IPv6's clothes, which a socket connects to as IPv4 (RFC 4291 section 2.5.5.2). */
const mappedV4 = rangeOf(['::ffff:0:0/96', 'unallocated'])

/**
 * Why an address, as text, is not a public host's, or `undefined` where it is. A mapped IPv4 address is judged as the IPv4 address
 * that it is. What does not parse, a zone index included, is `not-an-address`: no doubt ends in a connection.
 */
export function rangeOfAddress(text: string): AddressRange | undefined {
  if (isIPv4(text)) return rangeAmong(rangesV4, parseV4(text))
  if (!isIPv6(text) || text.includes('%')) return 'not-an-address'
  const address = parseV6(text)
  if (holds(mappedV4, address)) return rangeAmong(rangesV4, address & 0xffff_ffffn)
  return rangeAmong(rangesV6, address) ?? (holds(allocatedV6, address) ? undefined : 'unallocated')
}

function rangeAmong(ranges: readonly Range[], address: bigint): AddressRange | undefined {
  return ranges.find((range) => holds(range, address))?.name
}

function holds({ first, freeBits }: Range, address: bigint): boolean {
  return address >> freeBits === first >> freeBits
}

function rangesOf(blocks: readonly (readonly [string, AddressRange])[]): readonly Range[] {
  return blocks.map(rangeOf)
}

function rangeOf([block, name]: readonly [string, AddressRange]): Range {
  const [address = '', bits = ''] = block.split('/')
  const isV4 = isIPv4(address)
  return { first: isV4 ? parseV4(address) : parseV6(address), freeBits: BigInt((isV4 ? 32 : 128) - Number(bits)), name }
}

/** Of a text that `isIPv4` has passed. */
function parseV4(text: string): bigint {
  return text.split('.').reduce((value, part) => (value << 8n) | BigInt(part), 0n)
}

/** Of a text that `isIPv6` has passed and that has no zone. */
function parseV6(text: string): bigint {
  const dotted = text.slice(text.lastIndexOf(':') + 1)
  if (dotted.includes('.')) {
    const low = parseV4(dotted)
    const groups = `${(low >> 16n).toString(16)}:${(low & 0xffffn).toString(16)}`
    return parseV6(text.slice(0, -dotted.length) + groups)
  }
  const [head = '', tail] = text.split('::')
  const front = groupsOf(head)
  const back = tail === undefined ? [] : groupsOf(tail)
  const gap: string[] = Array(8 - front.length - back.length).fill('0')
  return [...front, ...gap, ...back].reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n)
}

function groupsOf(text: string): string[] {
  return text === '' ? [] : text.split(':')
}

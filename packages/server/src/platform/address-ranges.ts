import { isIPv4, isIPv6 } from 'node:net'

/**
 * The range of an address that is not a public host's. `cloud`: addresses at which a machine gets its cloud credentials. `tunnel`:
 * addresses with an embedded IPv4 address (NAT64, 6to4, Teredo, IPv4-compatible), which could reach a private one. `unallocated`: addresses
 * that are assigned to nobody.
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

/** Ranges that a deployment may open for development: hosts of its own networks, and never cloud credentials. */
export const privateRanges: ReadonlySet<AddressRange> = new Set(['loopback', 'private', 'carrier'])

interface Range {
  readonly first: bigint
  /** Number of bits after the range's fixed prefix. */
  readonly freeBits: bigint
  readonly name: AddressRange
}

/** IANA IPv4 Special-Purpose Address Registry (RFC 6890); addresses that clouds reserve come first. */
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

/** IANA IPv6 Special-Purpose Address Registry; any other address must be in the block that is allocated to hosts. */
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

/** Global unicast, the only block from which registries allocate host addresses (RFC 4291 section 2.5.4). */
const allocatedV6 = rangeOf(['2000::/3', 'unallocated'])

/** `::ffff:a.b.c.d`: an IPv4 address in IPv6 notation, which a socket connects to as IPv4 (RFC 4291 section 2.5.5.2). */
const mappedV4 = rangeOf(['::ffff:0:0/96', 'unallocated'])

/**
 * Returns why an address, as text, is not a public host's; `undefined` if it is. A mapped IPv4 address is treated as its IPv4 address. Text that does
 * not parse, including a zone index, is `not-an-address`, so that it is never connected to.
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

/** Parses a text that `isIPv4` accepted. */
function parseV4(text: string): bigint {
  return text.split('.').reduce((value, part) => (value << 8n) | BigInt(part), 0n)
}

/** Parses a text that `isIPv6` accepted and that has no zone. */
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

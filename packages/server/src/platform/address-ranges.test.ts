import { BlockList } from 'node:net'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type AddressRange, privateRanges, rangeOfAddress } from './address-ranges.ts'

const bad: readonly (readonly [string, AddressRange])[] = [
  ['0.0.0.0', 'unspecified'],
  ['0.255.255.255', 'unspecified'],
  ['10.0.0.1', 'private'],
  ['10.255.255.255', 'private'],
  ['100.64.0.0', 'carrier'],
  ['100.127.255.255', 'carrier'],
  ['100.100.100.200', 'cloud'],
  ['127.0.0.1', 'loopback'],
  ['127.255.255.254', 'loopback'],
  ['168.63.129.16', 'cloud'],
  ['169.254.0.1', 'link-local'],
  ['169.254.169.254', 'link-local'],
  ['169.254.170.2', 'link-local'],
  ['172.16.0.1', 'private'],
  ['172.31.255.255', 'private'],
  ['192.0.0.1', 'protocol'],
  ['192.0.0.170', 'protocol'],
  ['192.0.0.192', 'cloud'],
  ['192.0.2.1', 'documentation'],
  ['192.31.196.1', 'protocol'],
  ['192.52.193.1', 'protocol'],
  ['192.88.99.1', 'tunnel'],
  ['192.168.0.1', 'private'],
  ['192.168.255.255', 'private'],
  ['192.175.48.1', 'protocol'],
  ['198.18.0.1', 'benchmarking'],
  ['198.19.255.255', 'benchmarking'],
  ['198.51.100.1', 'documentation'],
  ['203.0.113.1', 'documentation'],
  ['224.0.0.1', 'multicast'],
  ['239.255.255.255', 'multicast'],
  ['240.0.0.1', 'reserved'],
  ['255.255.255.255', 'reserved'],
  ['::', 'unspecified'],
  ['::1', 'loopback'],
  ['0:0:0:0:0:0:0:1', 'loopback'],
  ['::127.0.0.1', 'tunnel'],
  ['::8.8.8.8', 'tunnel'],
  ['::ffff:127.0.0.1', 'loopback'],
  ['::ffff:7f00:1', 'loopback'],
  ['::FFFF:10.0.0.1', 'private'],
  ['0:0:0:0:0:ffff:a9fe:a9fe', 'link-local'],
  ['::ffff:0.0.0.0', 'unspecified'],
  ['::ffff:0:127.0.0.1', 'tunnel'],
  ['64:ff9b::127.0.0.1', 'tunnel'],
  ['64:ff9b::a9fe:a9fe', 'tunnel'],
  ['64:ff9b::8.8.8.8', 'tunnel'],
  ['64:ff9b:1::1', 'tunnel'],
  ['64:ff9b:1:ffff::7f00:1', 'tunnel'],
  ['100::1', 'reserved'],
  ['100:0:0:1::1', 'unallocated'],
  ['200::1', 'unallocated'],
  ['2001::1', 'tunnel'],
  ['2001:0:4136:e378:8000:63bf:80ff:fffe', 'tunnel'],
  ['2001:1::1', 'protocol'],
  ['2001:2::1', 'benchmarking'],
  ['2001:10::1', 'protocol'],
  ['2001:20::1', 'protocol'],
  ['2001:db8::1', 'documentation'],
  ['2001:db8:ffff:ffff:ffff:ffff:ffff:ffff', 'documentation'],
  ['2002:7f00:1::', 'tunnel'],
  ['2002:a9fe:a9fe::1', 'tunnel'],
  ['2620:4f:8000::1', 'protocol'],
  ['3fff::1', 'documentation'],
  ['3fff:fff:ffff::1', 'documentation'],
  ['4000::1', 'unallocated'],
  ['5f00::1', 'reserved'],
  ['8000::1', 'unallocated'],
  ['fc00::1', 'private'],
  ['fd00:ec2::254', 'cloud'],
  ['fd00:ec2::23', 'cloud'],
  ['fd20:ce::254', 'cloud'],
  ['fd00:c1::a9fe:a9fe', 'cloud'],
  ['fd00:42::42', 'cloud'],
  ['fdff:ffff::1', 'private'],
  ['fe80::1', 'link-local'],
  ['febf::1', 'link-local'],
  ['fec0::1', 'private'],
  ['feff::1', 'private'],
  ['ff02::1', 'multicast'],
  ['ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'multicast'],
]

const noAddresses = [
  '',
  'localhost',
  '127.1',
  '2130706433',
  '0x7f.0.0.1',
  '0177.0.0.1',
  '127.0.0.1.',
  ' 127.0.0.1',
  '127.0.0.1\n',
  '8.8.8.8/32',
  '[::1]',
  '::1%lo',
  'fe80::1%eth0',
  '2606:4700:4700::1111%1',
  ':::',
  '1::2::3',
  '::ffff:1.2.3',
  '１２７.0.0.1',
]

const good = [
  '1.1.1.1',
  '8.8.8.8',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.0',
  '168.63.129.17',
  '169.253.255.255',
  '169.255.0.0',
  '172.15.255.255',
  '172.32.0.0',
  '192.0.1.0',
  '192.167.255.255',
  '192.169.0.0',
  '198.17.255.255',
  '198.20.0.0',
  '203.0.114.0',
  '223.255.255.255',
  '::ffff:8.8.8.8',
  '::ffff:808:808',
  '2000::1',
  '2001:200::1',
  '2001:4860:4860::8888',
  '2003::1',
  '2606:4700:4700::1111',
  '2a00:1450:4001:81b::200e',
  '3ffe:ffff::1',
  '3fff:1000::1',
]

test.each(bad)('"%s is not a public host\'s address, but %s"', (address, range) => {
  expect(rangeOfAddress(address)).toBe(range)
})

test.each(noAddresses)('%j is no address', (text) => {
  expect(rangeOfAddress(text)).toBe('not-an-address')
})

test.each(good)('"%s may be a public host\'s"', (address) => {
  expect(rangeOfAddress(address)).toBeUndefined()
})

test('addresses that issue credentials stay blocked even if private networks are open', () => {
  const open = bad.filter(([, range]) => privateRanges.has(range)).map(([address]) => address)
  for (const address of ['169.254.169.254', '169.254.170.2', '168.63.129.16', '100.100.100.200', 'fd00:ec2::254'])
    expect(open).not.toContain(address)
  expect(open).toEqual(expect.arrayContaining(['127.0.0.1', '::1', '10.0.0.1', '192.168.0.1', 'fc00::1']))
})

/** Node's own matcher, as an independent check of the blocks. */
const judge = new BlockList()
for (const [block, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['168.63.129.16', 32],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.31.196.0', 24],
  ['192.52.193.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['192.175.48.0', 24],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const)
  judge.addSubnet(block, bits, 'ipv4')

const anyV4 = fc.oneof(
  fc.ipV4(),
  fc
    .tuple(fc.constantFrom(...bad.filter(([text]) => !text.includes(':'))), fc.integer({ min: -2, max: 2 }))
    .map(([[text], step]) => {
      const value = text.split('.').reduce((sum, part) => sum * 256 + Number(part), 0) + step
      return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) & 255).join('.')
    }),
)

test('Node matches every IPv4 address the same way, plain or mapped', () => {
  fc.assert(
    fc.property(anyV4, (address) => {
      const isBad = judge.check(address, 'ipv4')
      expect(rangeOfAddress(address) !== undefined).toBe(isBad)
      expect(rangeOfAddress(`::ffff:${address}`)).toBe(rangeOfAddress(address))
    }),
    { numRuns: 2_000 },
  )
})

test('an IPv6 address has the same verdict in every notation', () => {
  const group = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff }))
  fc.assert(
    fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (groups) => {
      const long = groups.map((value) => value.toString(16).padStart(4, '0')).join(':')
      const short = new URL(`http://[${long}]`).hostname.slice(1, -1)
      const [high = 0, low = 0] = groups.slice(6)
      const dotted = [high >> 8, high & 255, low >> 8, low & 255].join('.')
      const mixed = [...groups.slice(0, 6).map((value) => value.toString(16)), dotted].join(':')
      for (const text of [short, long.toUpperCase(), mixed]) expect(rangeOfAddress(text)).toBe(rangeOfAddress(long))
    }),
    { numRuns: 2_000 },
  )
})

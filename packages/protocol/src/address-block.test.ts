import { expect, test } from 'vitest'
import { addressBlock, addressSite } from './address-block.ts'

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:DB8:0001:2::', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['192.0.2.7:51234', '192.0.2.7'],
  ['[2001:db8:1:2::5]:443', '2001:db8:1:2::/64'],
  ['[2001:db8:1:2::5]', '2001:db8:1:2::/64'],
])('%s is limited as %s', (ip, block) => {
  expect(addressBlock(ip)).toBe(block)
})

test.each([
  ['192.0.2.7:51234', '192.0.2.0/24'],
  ['::ffff:192.0.2.7', '192.0.2.0/24'],
  ['2001:db8:1:2::5', '2001:db8:1::/48'],
  ['2001:db8::1', '2001:db8:0::/48'],
])('%s is of the site %s', (ip, site) => {
  expect(addressSite(ip)).toBe(site)
})

import { expect, test } from 'vitest'
import { parseProxies } from './proxies.ts'

test.each([
  ['', false],
  ['false', false],
  ['0', false],
  ['1', 1],
  ['16', 16],
  ['10.0.0.0/8', ['10.0.0.0/8']],
  ['10.0.0.0/8, fd00::/8,192.0.2.7', ['10.0.0.0/8', 'fd00::/8', '192.0.2.7']],
] as const)('%j trusts %j', (text, proxies) => {
  expect(parseProxies(text)).toEqual(proxies)
})

test.each([
  'true',
  'yes',
  '17',
  '-1',
  '1.5',
  '0.0.0.0/0',
  '::/0',
  '10.0.0.0/33',
  '10.0.0.0/8/8',
  'proxy.internal',
  ',',
])('%j is refused, so that no setting trusts every address', (text) => {
  expect(parseProxies(text)).toBeUndefined()
})

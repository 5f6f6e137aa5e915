import { expect, test } from 'vitest'
import { caip2OfChainId, chainIdOfCaip2, formatCaip10, parseCaip2, parseCaip10 } from './caip.ts'

const account = '0x857b06519E91e3A54538791bDbb0E22373e36b66'

test('the chain ids of the CAIP-2 specification are read in their two parts', () => {
  expect(parseCaip2('eip155:1')).toEqual({ namespace: 'eip155', reference: '1' })
  expect(parseCaip2('bip122:000000000019d6689c085ae165831e93')).toEqual({
    namespace: 'bip122',
    reference: '000000000019d6689c085ae165831e93',
  })
  expect(parseCaip2('cosmos:cosmoshub-3')).toEqual({ namespace: 'cosmos', reference: 'cosmoshub-3' })
  expect(parseCaip2('solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp')?.namespace).toBe('solana')
})

test('an EVM chain has one name', () => {
  expect(chainIdOfCaip2(caip2OfChainId(8453))).toBe(8453)
  for (const text of [
    '',
    'eip155',
    'eip155:',
    'eip155:08453',
    'eip155:0',
    'eip155:0x1',
    'eip155:1e3',
    'EIP155:1',
    'eip155:1:2',
    'eip155:-1',
    'eip155:9999999999999999',
    'solana:1',
    ' eip155:1',
    'eip155:1\n',
  ]) {
    expect(chainIdOfCaip2(text), text).toBeUndefined()
  }
})

test('an account on a chain is read back, and not with a wrong checksum', () => {
  expect(parseCaip10(formatCaip10(84532, account))).toEqual({ chainId: 84532, address: account })
  for (const text of [
    account,
    `eip155:1:${account}:`,
    'eip155:1:',
    ':',
    '',
    `eip155:1:${account.replace('0x857b', '0x857B')}`,
  ]) {
    expect(parseCaip10(text), text).toBeUndefined()
  }
})

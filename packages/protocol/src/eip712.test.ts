import fc from 'fast-check'
import { hashTypedData } from 'viem'
import { expect, test } from 'vitest'
import { typedData } from '../test/signed-payment.ts'
import { bytesToHex, hexToBytes, uint256Max } from './bytes.ts'
import { networkByCaip2, tokenBySymbol } from './chains.ts'
import { domainSeparator, transferWithAuthorizationDigest, typedDataDigest } from './eip712.ts'
import separators from './vectors/domain-separators.json' with { type: 'json' }
import mail from './vectors/eip712.json' with { type: 'json' }

const address = fc.uint8Array({ minLength: 20, maxLength: 20 }).map(bytesToHex)
const bytes32 = fc.uint8Array({ minLength: 32, maxLength: 32 }).map(bytesToHex)
const uint256 = fc.bigInt({ min: 0n, max: uint256Max })
const domain = fc.record({
  name: fc.string({ unit: 'grapheme', maxLength: 40 }),
  version: fc.string({ minLength: 1, maxLength: 5 }),
  chainId: fc.integer({ min: 1, max: 2 ** 40 }),
  verifyingContract: address,
})
const message = fc.record({
  from: address,
  to: address,
  value: uint256,
  validAfter: uint256,
  validBefore: uint256,
  nonce: bytes32,
})

test('the digest is what viem would have the payer sign, for any domain and any authorization', () => {
  fc.assert(
    fc.property(domain, message, (tokenDomain, authorization) => {
      const digest = transferWithAuthorizationDigest(domainSeparator(tokenDomain), authorization)
      expect(bytesToHex(digest)).toBe(hashTypedData({ ...typedData, domain: tokenDomain, message: authorization }))
    }),
    { numRuns: 300 },
  )
})

test('the domain of every USDC is the one that its contract publishes', () => {
  for (const { caip2, separator } of separators.vectors) {
    const network = networkByCaip2(caip2)
    const token = network && tokenBySymbol(network, 'USDC')
    if (network === undefined || token?.eip712 == null) throw new Error(`no USDC on ${caip2}`)
    const { eip712, address: verifyingContract } = token
    const computed = domainSeparator({ ...eip712, chainId: network.chainId, verifyingContract })
    expect(bytesToHex(computed), caip2).toBe(separator)
  }
})

test('the example of EIP-712 has its published hashes', () => {
  const { name, version, chainId } = mail.domain
  const separator = domainSeparator({
    name,
    version,
    chainId,
    verifyingContract: '0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC',
  })
  expect(bytesToHex(separator)).toBe(mail.domainSeparator)
  expect(bytesToHex(typedDataDigest(separator, hexToBytes(mail.structHash)))).toBe(mail.digest)
})

test('a field that is too long or too short is refused and not hashed as another one', () => {
  const separator = new Uint8Array(32)
  const [sample] = fc.sample(message, { numRuns: 1, seed: 1 })
  if (sample === undefined) throw new Error('no sample')
  const changes = [
    { from: '0x00' },
    { to: `0x${'0'.repeat(42)}` },
    { nonce: '0x' },
    { nonce: `0x${'0'.repeat(66)}` },
    { value: uint256Max + 1n },
    { validAfter: -1n },
    { from: `0x${'g'.repeat(40)}` },
  ] as const
  for (const change of changes) {
    expect(
      () => transferWithAuthorizationDigest(separator, { ...sample, ...change }),
      JSON.stringify(Object.keys(change)),
    ).toThrow(RangeError)
  }
  expect(() => typedDataDigest(new Uint8Array(31), new Uint8Array(32))).toThrow(RangeError)
})

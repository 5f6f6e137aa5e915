import { secp256k1 } from '@noble/curves/secp256k1.js'
import fc from 'fast-check'
import { getAddress, isAddress as viemIsAddress } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { expect, test } from 'vitest'
import { addressOfPublicKey, checksumAddress, isAddress, parseAddress, sameAddress } from './address.ts'
import { bytesToHex } from './bytes.ts'
import eip55 from './vectors/eip55.json' with { type: 'json' }

const address = fc.uint8Array({ minLength: 20, maxLength: 20 }).map(bytesToHex)

test('addresses are written with the published EIP-55 checksums', () => {
  for (const vector of eip55.vectors) {
    expect(checksumAddress(vector.toLowerCase())).toBe(vector)
    expect(parseAddress(vector)).toBe(vector)
  }
})

test('any address gets the checksum that viem gives it, from lower and from upper case', () => {
  fc.assert(
    fc.property(address, (lower) => {
      expect(checksumAddress(lower)).toBe(getAddress(lower))
      expect(parseAddress(lower)).toBe(getAddress(lower))
      expect(parseAddress(`0x${lower.slice(2).toUpperCase()}`)).toBe(getAddress(lower))
    }),
  )
})

test('an address with one letter in the wrong case is refused', () => {
  fc.assert(
    fc.property(address, fc.nat(39), (lower, at) => {
      const right = getAddress(lower)
      const digit = right[2 + at] ?? ''
      const turned = digit === digit.toLowerCase() ? digit.toUpperCase() : digit.toLowerCase()
      const wrong = right.slice(0, 2 + at) + turned + right.slice(3 + at)
      const oneCase = [wrong.toLowerCase(), `0x${wrong.slice(2).toUpperCase()}`].includes(wrong)
      expect(parseAddress(wrong)).toBe(wrong === right || oneCase ? right : undefined)
      expect(sameAddress(wrong, right)).toBe(true)
    }),
  )
})

test('a text that is not an address is not taken for one', () => {
  const texts = [
    '',
    '0x',
    `0X${'a'.repeat(40)}`,
    `0x${'a'.repeat(39)}`,
    `0x${'a'.repeat(41)}`,
    `0x${'g'.repeat(40)}`,
    ` 0x${'a'.repeat(40)}`,
    `0x${'a'.repeat(40)}\n`,
  ]
  for (const text of texts) {
    expect(isAddress(text), text).toBe(false)
    expect(viemIsAddress(text, { strict: false }), text).toBe(false)
    expect(parseAddress(text), text).toBeUndefined()
    expect(() => checksumAddress(text), text).toThrow(RangeError)
  }
})

test('the address of a public key is the one that viem derives from its private key', () => {
  const privateKey = '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d'
  const publicKey = secp256k1.getPublicKey(Uint8Array.from(Buffer.from(privateKey.slice(2), 'hex')), false)
  expect(addressOfPublicKey(publicKey)).toBe(privateKeyToAccount(privateKey).address.toLowerCase())
  expect(addressOfPublicKey(publicKey.slice(1))).toBeUndefined()
})

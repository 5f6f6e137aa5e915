import { crc32 as nodeCrc32 } from 'node:zlib'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { composeApiKey, parseApiKey } from './api-key.ts'
import { decodeBase62, encodeBase62 } from './base62.ts'
import { uint256Max, uint256ToBytes } from './bytes.ts'
import { crc32 } from './crc32.ts'
import { utf8 } from './utf8.ts'

const secret = fc.uint8Array({ minLength: 32, maxLength: 32 })
const environment = fc.constantFrom('test' as const, 'live' as const)

test('a key has the documented form, says its environment and keeps all 256 bits', () => {
  fc.assert(
    fc.property(environment, secret, (name, bytes) => {
      const key = composeApiKey(name, bytes)
      expect(key).toMatch(new RegExp(`^svc_${name}_sk_[0-9A-Za-z]{49}$`))
      expect(parseApiKey(key)).toEqual({ environment: name })
      expect(uint256ToBytes(decodeBase62(key.slice(12, 55)) ?? -1n)).toEqual(bytes)
      expect(decodeBase62(key.slice(55))).toBe(BigInt(nodeCrc32(key.slice(0, 55))))
    }),
  )
})

test('one mistyped character is noticed wherever it is', () => {
  fc.assert(
    fc.property(environment, secret, fc.nat(60), fc.constantFrom(...'0Aaz9_-é'), (name, bytes, at, letter) => {
      const key = composeApiKey(name, bytes)
      const typo = key.slice(0, at) + letter + key.slice(at + 1)
      expect(parseApiKey(typo)).toEqual(typo === key ? { environment: name } : undefined)
    }),
  )
  const key = composeApiKey('test', new Uint8Array(32).fill(7))
  for (const text of [
    '',
    key.slice(1),
    `${key}0`,
    ` ${key}`,
    `${key}\n`,
    key.replace('test', 'live'),
    key.replace('_sk_', '_pk_'),
  ]) {
    expect(parseApiKey(text), text).toBeUndefined()
  }
})

test('a key is not made of fewer or more than 32 bytes', () => {
  expect(() => composeApiKey('live', new Uint8Array(31))).toThrow(RangeError)
  expect(() => composeApiKey('live', new Uint8Array(33))).toThrow(RangeError)
})

test('CRC-32 gives the published check value and what zlib gives', () => {
  expect(crc32(utf8('123456789'))).toBe(0xcbf43926)
  fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => crc32(bytes) === nodeCrc32(bytes)))
})

test('base62 comes back and never loses what does not fit', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: uint256Max }), (value) => {
      expect(decodeBase62(encodeBase62(value, 43))).toBe(value)
    }),
  )
  expect(encodeBase62(0n, 3)).toBe('000')
  expect(encodeBase62(61n, 1)).toBe('z')
  expect(() => encodeBase62(62n, 1)).toThrow(RangeError)
  expect(() => encodeBase62(-1n, 6)).toThrow(RangeError)
  expect(decodeBase62('')).toBeUndefined()
  expect(decodeBase62('a-b')).toBeUndefined()
})

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bytesToHex, hexToBytes } from './bytes.ts'
import { encodeTypeId, newTypeId, parseTypeId, uuidV7 } from './typeid.ts'
import vectors from './vectors/typeid.json' with { type: 'json' }

const sixteen = fc.uint8Array({ minLength: 16, maxLength: 16 })

test('the valid ids of the TypeID specification are written and read', () => {
  for (const { typeid, prefix, uuid, name } of vectors.valid) {
    const bytes = hexToBytes(`0x${uuid.replaceAll('-', '')}`)
    expect(encodeTypeId(prefix, bytes), name).toBe(typeid)
    expect(parseTypeId(typeid), name).toEqual({ prefix, bytes })
  }
})

test('the invalid ids of the TypeID specification are refused', () => {
  for (const { typeid, name } of vectors.invalid) expect(parseTypeId(typeid), name).toBeUndefined()
})

/** The specification's encoding: 130 bits, of which the first two are zero, five for each letter. */
function encodedByBits(bytes: Uint8Array): string {
  const number = BigInt(bytesToHex(bytes))
  const letters = Array.from({ length: 26 }, (_, place) => Number((number >> BigInt(5 * (25 - place))) & 31n))
  return letters.map((letter) => '0123456789abcdefghjkmnpqrstvwxyz'[letter]).join('')
}

test('each letter of an id is five bits of its bytes', () => {
  fc.assert(
    fc.property(sixteen, (bytes) => {
      expect(encodeTypeId('', bytes)).toBe(encodedByBits(bytes))
    }),
  )
})

test('a UUIDv7 begins with any time of 48 bits', () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), (number) => {
      const ms = number % 2 ** 48
      const hex = bytesToHex(uuidV7(ms, new Uint8Array(10)))
      expect(Number.parseInt(hex.slice(2, 14), 16)).toBe(ms)
    }),
  )
})

test('ids come back from their text and sort as their bytes do', () => {
  fc.assert(
    fc.property(sixteen, sixteen, (left, right) => {
      expect(parseTypeId(encodeTypeId('pay', left))?.bytes).toEqual(left)
      expect(encodeTypeId('pay', left) < encodeTypeId('pay', right)).toBe(bytesToHex(left) < bytesToHex(right))
    }),
  )
})

test('a prefix or a length outside the specification is refused when writing', () => {
  for (const prefix of ['Pay', '_pay', 'pay_', 'p1', 'a'.repeat(64)]) {
    expect(() => encodeTypeId(prefix, new Uint8Array(16)), prefix).toThrow(RangeError)
  }
  expect(() => encodeTypeId('pay', new Uint8Array(15))).toThrow(RangeError)
})

test('a UUIDv7 has the time, version and variant of RFC 9562, and later ones sort later', () => {
  const bytes = uuidV7(0x017f22e279b0, hexToBytes('0x0cc318c4dc0c0c07398f'))
  expect(bytesToHex(bytes)).toBe('0x017f22e279b07cc398c4dc0c0c07398f')
  fc.assert(
    fc.property(fc.nat({ max: 2 ** 31 }), fc.uint8Array({ minLength: 10, maxLength: 10 }), (ms, random) => {
      const now = bytesToHex(uuidV7(ms, random))
      expect(now < bytesToHex(uuidV7(ms + 1, new Uint8Array(10)))).toBe(true)
      expect(now).toMatch(/^0x.{12}7.{3}[89ab]/)
    }),
  )
  expect(newTypeId('prefix', 0x01890a5dac96, hexToBytes('0x774bbcceb302099a8057'))).toBe(
    'prefix_01h455vb4pex5vsknk084sn02q',
  )
  expect(() => uuidV7(-1, new Uint8Array(10))).toThrow(RangeError)
  expect(() => uuidV7(1.5, new Uint8Array(10))).toThrow(RangeError)
  expect(() => uuidV7(1, new Uint8Array(16))).toThrow(RangeError)
})

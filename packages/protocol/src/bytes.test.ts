import fc from 'fast-check'
import { numberToBytes, bytesToHex as viemBytesToHex } from 'viem'
import { expect, test } from 'vitest'
import {
  bytesToHex,
  concatBytes,
  digitsOf,
  equalBytes,
  hexToBytes,
  readUint256,
  uint256Max,
  uint256ToBytes,
  writeHex,
} from './bytes.ts'

const uint256 = fc.bigInt({ min: 0n, max: uint256Max })

test('bytes come back from their hex, which is the one that viem writes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      expect(bytesToHex(bytes)).toBe(viemBytesToHex(bytes))
      expect(hexToBytes(bytesToHex(bytes))).toEqual(bytes)
      expect(hexToBytes(`0x${bytesToHex(bytes).slice(2).toUpperCase()}`)).toEqual(bytes)
    }),
  )
})

test('an engine without native hex writes the same', () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      expect(`0x${digitsOf(bytes)}`).toBe(bytesToHex(bytes))
    }),
  )
})

test('a text that is not whole bytes of hex is never read as bytes', () => {
  for (const text of ['', '0', '0x0', '0xzz', '00', '0x0 ', '0x\u0000\u0000', '0x١١', '0x-1']) {
    expect(() => hexToBytes(text), text).toThrow(RangeError)
  }
  expect(() => writeHex(new Uint8Array(2), 1, '0xffff')).toThrow(RangeError)
})

test('a uint256 is 32 big-endian bytes and comes back, at every size', () => {
  fc.assert(
    fc.property(fc.oneof(uint256, fc.bigInt({ min: 0n, max: 1n << 70n })), (value) => {
      expect(uint256ToBytes(value)).toEqual(numberToBytes(value, { size: 32 }))
      expect(readUint256(uint256ToBytes(value))).toBe(value)
    }),
  )
})

test('what is no uint256 is not cut down to one', () => {
  expect(() => uint256ToBytes(-1n)).toThrow(RangeError)
  expect(() => uint256ToBytes(uint256Max + 1n)).toThrow(RangeError)
  expect(() => readUint256(new Uint8Array(31))).toThrow(RangeError)
  expect(() => readUint256(new Uint8Array(32), 1)).toThrow(RangeError)
})

test('arrays of bytes are joined in order and compared by every byte', () => {
  const joined = concatBytes(Uint8Array.of(1), new Uint8Array(0), Uint8Array.of(2, 3))
  expect(equalBytes(joined, Uint8Array.of(1, 2, 3))).toBe(true)
  expect(equalBytes(joined, Uint8Array.of(1, 2, 4))).toBe(false)
  expect(equalBytes(joined, Uint8Array.of(1, 2))).toBe(false)
})

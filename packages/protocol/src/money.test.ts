import fc from 'fast-check'
import { formatUnits, parseUnits } from 'viem'
import { expect, test } from 'vitest'
import { uint256Max } from './bytes.ts'
import { formatAmount, parseAmount, parseRaw, priceInStablecoin } from './money.ts'

const decimals = fc.nat(18)
const raw = fc.bigInt({ min: 0n, max: uint256Max })

test('an amount is written as viem writes it and comes back to the same number', () => {
  fc.assert(
    fc.property(raw, decimals, (value, digits) => {
      const text = formatAmount(value, digits)
      expect(text).toBe(formatUnits(value, digits))
      expect(parseAmount(text, digits)).toBe(value)
      expect(parseUnits(text, digits)).toBe(value)
    }),
  )
})

test('an amount has one text: no zeros at its end and no bare point', () => {
  expect(formatAmount(10_000n, 6)).toBe('0.01')
  expect(formatAmount(1_000_000n, 6)).toBe('1')
  expect(formatAmount(0n, 6)).toBe('0')
  expect(formatAmount(-1_500_000n, 6)).toBe('-1.5')
  expect(formatAmount(100n, 0)).toBe('100')
})

test('more digits than the token has are refused and never rounded', () => {
  expect(parseAmount('0.000001', 6)).toBe(1n)
  expect(parseAmount('0.0000001', 6)).toBe('too-many-digits')
  expect(parseAmount('0.0100000', 6)).toBe('too-many-digits')
  expect(parseAmount('1.0', 0)).toBe('too-many-digits')
  expect(priceInStablecoin('0.0000019', { decimals: 6 })).toBe('too-many-digits')
  expect(priceInStablecoin('0.01', { decimals: 6 })).toBe(10_000n)
})

test('nothing but a plain decimal is an amount', () => {
  const texts = [
    '',
    ' ',
    '1 ',
    '+1',
    '.5',
    '1.',
    '01',
    '00',
    '0x1',
    '1e3',
    '1E-3',
    '1,000',
    '1_000',
    'NaN',
    'Infinity',
    '١',
    '１',
    '1\n',
    '1\u0000',
    '$1',
    '--1',
    '-',
    '-.',
    '1.2.3',
    '9'.repeat(10_000),
    `0.${'0'.repeat(10_000_000)}`,
  ]
  for (const text of texts) {
    expect(parseAmount(text, 6), text.slice(0, 20)).toBe('not-a-decimal')
    expect(parseRaw(text), text.slice(0, 20)).toBe('not-a-decimal')
  }
})

test('a negative amount is refused as such, and so is one beyond 2^256 - 1', () => {
  expect(parseAmount('-1', 6)).toBe('negative')
  expect(parseAmount('-0.01', 6)).toBe('negative')
  expect(parseRaw('-1')).toBe('negative')
  expect(parseAmount(uint256Max.toString(), 0)).toBe(uint256Max)
  expect(parseAmount((uint256Max + 1n).toString(), 0)).toBe('too-large')
  expect(parseAmount(uint256Max.toString(), 6)).toBe('too-large')
  expect(parseRaw(uint256Max.toString())).toBe(uint256Max)
  expect(parseRaw((uint256Max + 1n).toString())).toBe('too-large')
  expect(parseRaw('9'.repeat(150))).toBe('too-large')
  expect(parseRaw('1.5')).toBe('not-a-decimal')
})

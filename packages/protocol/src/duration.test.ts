import fc from 'fast-check'
import { expect, test } from 'vitest'
import { durationSecondsMax, parseDuration } from './duration.ts'

test.each([
  ['1m', 60],
  ['90m', 5_400],
  ['24h', 86_400],
  ['7d', 604_800],
  ['30d', 2_592_000],
  ['3650d', durationSecondsMax],
])('%s is %i seconds', (text, seconds) => {
  expect(parseDuration(text)).toBe(seconds)
})

test('any whole number of a unit within the bound is read exactly', () => {
  const units = { m: 60, h: 3_600, d: 86_400 }
  fc.assert(
    fc.property(fc.constantFrom('m', 'h', 'd'), fc.integer({ min: 1, max: 6_000_000 }), (unit, count) => {
      const seconds = count * units[unit]
      expect(parseDuration(`${count}${unit}`)).toBe(seconds > durationSecondsMax ? 'too-long' : seconds)
    }),
  )
})

test.each(['3651d', '87601h', '5256001m', '9999999999d'])('%s is longer than anything may last', (text) => {
  expect(parseDuration(text)).toBe('too-long')
})

test.each([
  '',
  'h',
  '24',
  '0h',
  '00h',
  '024h',
  '-1h',
  '+1h',
  '1.5h',
  '1e3h',
  ' 1h',
  '1h ',
  '1h\n',
  '1 h',
  '1H',
  '1s',
  '1w',
  '1hh',
  '1h30m',
  '١h',
  '0x1h',
  '1_000h',
  'PT1H',
  '12345678901h',
  `${'9'.repeat(100_000)}h`,
])('%j is not a duration', (text) => {
  expect(parseDuration(text)).toBe('not-a-duration')
})

test('no text makes the reader throw or answer anything but whole seconds within the bound or a fault', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9mhd.+-]{0,14}$/)), (text) => {
      const result = parseDuration(text)
      if (typeof result === 'number') {
        expect(Number.isInteger(result)).toBe(true)
        expect(result).toBeGreaterThanOrEqual(60)
        expect(result).toBeLessThanOrEqual(durationSecondsMax)
      } else expect(['not-a-duration', 'too-long']).toContain(result)
    }),
  )
})

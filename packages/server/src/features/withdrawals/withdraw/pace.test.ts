import fc from 'fast-check'
import { expect, test } from 'vitest'
import { nextLookMs } from './pace.ts'

const dayMs = 86_400_000

test('a young withdrawal is looked at each second, an old one every five minutes', () => {
  expect(nextLookMs('pending_conversion', 0)).toBe(1_000)
  expect(nextLookMs('conversion_complete', 80_000)).toBe(10_000)
  expect(nextLookMs('pending_conversion', 90 * dayMs)).toBe(300_000)
})

test('a completed one is looked at for thirty days, a failed one no more', () => {
  expect(nextLookMs('completed', 30 * dayMs)).toBe(6 * 3_600_000)
  expect(nextLookMs('completed', 30 * dayMs + 1)).toBeUndefined()
  expect(nextLookMs('failed', 0)).toBeUndefined()
})

test('what is under way is never left alone', () => {
  fc.assert(
    fc.property(fc.constantFrom('pending_conversion', 'conversion_complete'), fc.nat(), (status, age) => {
      const waitMs = nextLookMs(status, age)
      expect(waitMs).toBeGreaterThanOrEqual(1_000)
      expect(waitMs).toBeLessThanOrEqual(300_000)
    }),
  )
})

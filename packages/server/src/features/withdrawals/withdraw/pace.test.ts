import fc from 'fast-check'
import { expect, test } from 'vitest'
import { nextLookMs } from './pace.ts'

const dayMs = 86_400_000

test('a young withdrawal is looked at each second, an old one every five minutes', () => {
  expect(nextLookMs({ status: 'pending_conversion', refund: null }, 0)).toBe(1_000)
  expect(nextLookMs({ status: 'conversion_complete', refund: null }, 80_000)).toBe(10_000)
  expect(nextLookMs({ status: 'pending_conversion', refund: null }, 90 * dayMs)).toBe(300_000)
})

test('a completed one is looked at for thirty days, a failed one as long as its tokens are the partner’s', () => {
  expect(nextLookMs({ status: 'completed', refund: null }, 30 * dayMs)).toBe(6 * 3_600_000)
  expect(nextLookMs({ status: 'completed', refund: null }, 30 * dayMs + 1)).toBeUndefined()
  expect(nextLookMs({ status: 'failed', refund: null }, 0)).toBeUndefined()
  expect(nextLookMs({ status: 'failed', refund: 'done' }, 0)).toBeUndefined()
  expect(nextLookMs({ status: 'failed', refund: 'expected' }, dayMs)).toBe(3 * 3_600_000)
  expect(nextLookMs({ status: 'failed', refund: 'held' }, 30 * dayMs + 1)).toBeUndefined()
})

test('what is under way is never left alone', () => {
  fc.assert(
    fc.property(fc.constantFrom('pending_conversion', 'conversion_complete'), fc.nat(), (status, age) => {
      const waitMs = nextLookMs({ status, refund: null }, age)
      expect(waitMs).toBeGreaterThanOrEqual(1_000)
      expect(waitMs).toBeLessThanOrEqual(300_000)
    }),
  )
})

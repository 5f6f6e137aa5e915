import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { PayoutState } from '../../../partners/offramp/port.ts'
import { isLateReading, nextPollMs, progressOf, refundNow } from './follow.ts'

const dayMs = 86_400_000

test('a young withdrawal is polled each second, an old one every five minutes', () => {
  expect(nextPollMs({ status: 'pending_conversion', refund: null }, 0)).toBe(1_000)
  expect(nextPollMs({ status: 'conversion_complete', refund: null }, 80_000)).toBe(10_000)
  expect(nextPollMs({ status: 'pending_conversion', refund: null }, 90 * dayMs)).toBe(300_000)
})

test('a completed one is polled for thirty days, a failed one as long as the partner has its tokens', () => {
  expect(nextPollMs({ status: 'completed', refund: null }, 30 * dayMs)).toBe(6 * 3_600_000)
  expect(nextPollMs({ status: 'completed', refund: null }, 30 * dayMs + 1)).toBeUndefined()
  expect(nextPollMs({ status: 'failed', refund: null }, 0)).toBeUndefined()
  expect(nextPollMs({ status: 'failed', refund: 'done' }, 0)).toBeUndefined()
  expect(nextPollMs({ status: 'failed', refund: 'expected' }, dayMs)).toBe(3 * 3_600_000)
  expect(nextPollMs({ status: 'failed', refund: 'held' }, 30 * dayMs + 1)).toBeUndefined()
})

test('a withdrawal in progress is always polled', () => {
  fc.assert(
    fc.property(fc.constantFrom('pending_conversion', 'conversion_complete'), fc.nat(), (status, age) => {
      const waitMs = nextPollMs({ status, refund: null }, age)
      expect(waitMs).toBeGreaterThanOrEqual(1_000)
      expect(waitMs).toBeLessThanOrEqual(300_000)
    }),
  )
})

const states: readonly PayoutState[] = ['pending_conversion', 'conversion_complete', 'completed', 'failed']

test('a payout only moves forward; a completed one may still be returned, and a failed one be paid', () => {
  const table = states.map((known) => states.map((seen) => progressOf(known, seen)))
  expect(table).toEqual([
    ['same', 'forward', 'forward', 'forward'],
    ['stale', 'same', 'forward', 'forward'],
    ['stale', 'stale', 'same', 'returned'],
    ['stale', 'stale', 'paid', 'same'],
  ])
})

test('a reading that began before the failure was stored is late, and one that began after it or of another status is not', () => {
  const failedAt = new Date('2026-12-01T10:00:00.000Z')
  const [before, after] = [new Date(failedAt.getTime() - 1), new Date(failedAt.getTime() + 1)]
  expect(isLateReading({ status: 'failed', failedAt }, before)).toBe(true)
  for (const readAt of [failedAt, after]) expect(isLateReading({ status: 'failed', failedAt }, readAt)).toBe(false)
  expect(isLateReading({ status: 'completed', failedAt }, before), 'paid after a failure').toBe(false)
  expect(isLateReading({ status: 'pending_conversion', failedAt: null }, before)).toBe(false)
})

test('the refund of a failed withdrawal changes with what the partner reports, until the tokens are sent back', () => {
  const failed = (refund: 'none' | 'expected' | 'done' | 'held') => ({ failure: { reason: 'any', refund } })
  const held = { status: 'failed', refund: 'held' } as const
  expect(refundNow(held, failed('expected'))).toBe('expected')
  expect(refundNow({ ...held, refund: 'expected' }, failed('held'))).toBe('held')
  expect(refundNow({ ...held, refund: 'expected' }, failed('none')), 'it has the tokens').toBe('held')
  expect(refundNow(held, failed('done'))).toBe('done')
  for (const same of [failed('held'), failed('none'), {}]) expect(refundNow(held, same)).toBeUndefined()
  expect(refundNow({ ...held, refund: 'done' }, failed('held'))).toBeUndefined()
  expect(refundNow({ ...held, refund: null }, failed('held')), 'the partner has no tokens').toBeUndefined()
})

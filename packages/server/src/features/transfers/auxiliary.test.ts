import { expect, test } from 'vitest'
import { instantOf } from '../../platform/clock.ts'
import { nextPollTime } from './auxiliary.ts'

const now = instantOf('2026-11-22T12:00:00Z')

test.each([
  ['work that began just now is polled again after half a second', 0, 500],
  ['after eight seconds it is polled each second', 8_000, 1_000],
  ['after four minutes it is polled every thirty seconds', 240_000, 30_000],
  ['after a month it is polled every minute', 30 * 86_400_000, 60_000],
  ['a start time in the future, from a clock that is behind, counts as now', -5_000, 500],
])('%s', (_, sinceMs, waitMs) => {
  const began = instantOf(now.getTime() - sinceMs)
  expect(nextPollTime({ clock: { now: () => now } }, began).getTime() - now.getTime()).toBe(waitMs)
})

test('work that has not begun is polled again after half a second', () => {
  expect(nextPollTime({ clock: { now: () => now } }, null).getTime() - now.getTime()).toBe(500)
})

import { expect, test } from 'vitest'
import { instantOf } from '../../platform/clock.ts'
import { nextLook } from './pace.ts'

const now = instantOf('2026-11-22T12:00:00Z')

test.each([
  ['what began just now is looked at again in half a second', 0, 500],
  ['after eight seconds in one', 8_000, 1_000],
  ['after four minutes in thirty seconds', 240_000, 30_000],
  ['after a month in a minute', 30 * 86_400_000, 60_000],
  ['what a clock behind says is to come is taken as of now', -5_000, 500],
])('%s', (_, sinceMs, waitMs) => {
  const began = instantOf(now.getTime() - sinceMs)
  expect(nextLook({ clock: { now: () => now } }, began).getTime() - now.getTime()).toBe(waitMs)
})

test('what has not begun is looked at again in half a second', () => {
  expect(nextLook({ clock: { now: () => now } }, null).getTime() - now.getTime()).toBe(500)
})

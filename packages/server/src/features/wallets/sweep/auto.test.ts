import { expect, test } from 'vitest'
import { affordableChildren } from './auto.ts'

test.each([
  ['as many as the half of the day’s gas pays for', { each: 10n, day: 100n, left: 100n }, 5],
  ['as many as what is left above the half pays for', { each: 10n, day: 100n, left: 79n }, 2],
  ['none where only the half is left', { each: 10n, day: 100n, left: 59n }, 0],
  ['one that costs more than the half, on a day of which nothing was used', { each: 60n, day: 100n, left: 100n }, 1],
  ['none that costs more than the half, once a payment used gas of the day', { each: 60n, day: 100n, left: 99n }, 0],
  ['none that costs more than the day', { each: 101n, day: 100n, left: 100n }, 0],
  ['a thousand at most', { each: 1n, day: 100_000n, left: 100_000n }, 1_000],
  ['a thousand where gas is free', { each: 0n, day: 100n, left: 100n }, 1_000],
])('an automatic sweep takes %s', (_, budget, children) => {
  expect(affordableChildren(budget)).toBe(children)
})

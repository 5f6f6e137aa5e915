import { expect, test } from 'vitest'
import { levelOf, mayTakeShared } from './share.ts'

test.each([
  [[249, 21], 117],
  [[21, 249], 117],
  [[128, 129], 85],
  [[10, 20], 225],
  [[], 255],
])('of 255, owners with %j keep at most %d each, whatever their order', (totals, level) => {
  expect(levelOf(totals, 255)).toBe(level)
})

test('owners that take all that they may leave an eighth to an owner without any', () => {
  const own = Array.from({ length: 20 }, () => 0)
  const taken = () => own.reduce((sum, count) => sum + count, 0)
  for (let round = 0; round < 64; round += 1)
    for (const at of own.keys())
      if (mayTakeShared({ own: own[at] ?? 0, taken: taken(), max: 64 })) own[at] = (own[at] ?? 0) + 1
  expect(taken()).toBeLessThanOrEqual(56)
  expect(mayTakeShared({ own: 0, taken: taken(), max: 64 })).toBe(true)
})

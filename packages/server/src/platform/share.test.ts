import { expect, test } from 'vitest'
import { levelOf } from './share.ts'

test.each([
  [[249, 21], 117],
  [[21, 249], 117],
  [[128, 129], 85],
  [[10, 20], 225],
  [[], 255],
])('of 255, owners with %j keep at most %d each, whatever their order', (totals, level) => {
  expect(levelOf(totals, 255)).toBe(level)
})

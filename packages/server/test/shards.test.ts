import { expect, test } from 'vitest'
import { dealt } from './shards.ts'

const seconds = Array.from({ length: 703 }, (_, place) => 600 / (place + 1))

test('files are dealt forth and back, so that no machine gets the longer one each time', () => {
  expect(dealt([0, 1, 2, 3, 4, 5], { index: 1, count: 2 })).toEqual([0, 3, 4])
})

test.each([1, 2, 3, 5])('%i machines run each file once, and none runs much longer than another', (count) => {
  const shares = Array.from({ length: count }, (_, place) => dealt(seconds, { index: place + 1, count }))
  expect(shares.flat().sort((one, other) => other - one)).toEqual(seconds)
  const sums = shares.map((share) => share.slice(1).reduce((sum, one) => sum + one, 0))
  expect(Math.max(...sums) - Math.min(...sums)).toBeLessThan(seconds[0] ?? 0)
  const numbers = shares.map((share) => share.length)
  expect(Math.max(...numbers) - Math.min(...numbers)).toBeLessThanOrEqual(1)
})

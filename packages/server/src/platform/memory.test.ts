import { getHeapSpaceStatistics } from 'node:v8'
import { expect, test } from 'vitest'
import { giveBackRecentMemory, giveBackStartMemory } from './memory.ts'

const mebibyte = 2 ** 20

test('the young generation that a start filled is given back, and the process goes on', () => {
  for (let round = 0; round < 20; round += 1) churn()
  expect(youngMegabytes()).toBeGreaterThan(8)
  giveBackStartMemory()
  expect(youngMegabytes()).toBeLessThan(4)
  expect(churn()).toBe(100_000)
  expect('gc' in globalThis).toBe(false)
})

test('pieces of memory that were let go of are given back', async () => {
  giveBackStartMemory()
  const before = process.memoryUsage().arrayBuffers
  for (let piece = 0; piece < 16; piece += 1) Buffer.allocUnsafeSlow(mebibyte)
  expect(process.memoryUsage().arrayBuffers - before).toBeGreaterThan(15 * mebibyte)
  giveBackRecentMemory()
  // Another thread gives them back.
  await expect.poll(() => process.memoryUsage().arrayBuffers - before).toBeLessThan(2 * mebibyte)
})

/** Objects that outlive a collection of the young generation, which is what makes it grow. */
function churn(): number {
  return Array.from({ length: 100_000 }, (_, index) => ({ index, text: `object ${index}` })).length
}

function youngMegabytes(): number {
  const space = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')
  return (space?.space_size ?? Number.NaN) / mebibyte
}

import { performance } from 'node:perf_hooks'
import { getHeapSpaceStatistics } from 'node:v8'
import { expect, onTestFinished, test, vi } from 'vitest'
import { releaseMemoryWhenIdle, releaseRecentMemory, releaseStartMemory } from './memory.ts'

const mebibyte = 2 ** 20

test('the young generation that grew during the start is released, and the process continues', () => {
  for (let round = 0; round < 20; round += 1) churn()
  expect(youngMegabytes()).toBeGreaterThan(8)
  releaseStartMemory()
  expect(youngMegabytes()).toBeLessThan(4)
  expect(churn()).toBe(100_000)
  expect('gc' in globalThis).toBe(false)
})

test('an idle process that grew releases memory, and a busy one does not', () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => {
    vi.useRealTimers()
    vi.restoreAllMocks()
  })
  const share = { now: 0.9 }
  vi.spyOn(performance, 'eventLoopUtilization').mockImplementation(() => ({
    idle: 0,
    active: 0,
    utilization: share.now,
  }))
  releaseStartMemory()
  releaseMemoryWhenIdle()
  for (let round = 0; round < 20; round += 1) churn()
  vi.advanceTimersByTime(60_000)
  expect(youngMegabytes()).toBeGreaterThan(8)
  share.now = 0.01
  vi.advanceTimersByTime(30_000)
  expect(youngMegabytes()).toBeLessThan(4)
})

test('unused external memory is released', async () => {
  releaseStartMemory()
  const before = process.memoryUsage().arrayBuffers
  for (let piece = 0; piece < 16; piece += 1) Buffer.allocUnsafeSlow(mebibyte)
  expect(process.memoryUsage().arrayBuffers - before).toBeGreaterThan(15 * mebibyte)
  releaseRecentMemory()
  // Another thread releases them.
  await expect.poll(() => process.memoryUsage().arrayBuffers - before).toBeLessThan(2 * mebibyte)
})

/** Creates objects that outlive a collection of the young generation, which makes it grow. */
function churn(): number {
  return Array.from({ length: 100_000 }, (_, index) => ({ index, text: `object ${index}` })).length
}

function youngMegabytes(): number {
  const space = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')
  return (space?.space_size ?? Number.NaN) / mebibyte
}

import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { atMostEvery } from './at-most-every.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

test('calls run their work at most once a second, and each is followed by a run that begins after it', async () => {
  let runs = 0
  const work = atMostEvery(async () => {
    runs += 1
  }, 1_000)
  const finished: number[] = []
  const call = () => work().then(() => finished.push(runs))
  call()
  await vi.advanceTimersByTimeAsync(0)
  expect([runs, finished]).toEqual([1, [1]])
  for (let count = 0; count < 100; count++) call()
  await vi.advanceTimersByTimeAsync(999)
  expect([runs, finished]).toEqual([1, [1]])
  await vi.advanceTimersByTimeAsync(1)
  expect([runs, finished.length]).toEqual([2, 101])
  await vi.advanceTimersByTimeAsync(10_000)
  expect(runs).toBe(2)
  call()
  await vi.advanceTimersByTimeAsync(0)
  expect(runs).toBe(3)
})

test('a run that fails fails the calls that share it, and not the next ones', async () => {
  let isBroken = true
  const work = atMostEvery(async () => {
    if (isBroken) throw new Error('no mark')
  }, 1_000)
  const [first, second] = [work(), work()]
  const results = Promise.allSettled([first, second])
  await vi.advanceTimersByTimeAsync(0)
  expect((await results).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  isBroken = false
  const third = work()
  await vi.advanceTimersByTimeAsync(1_000)
  await expect(third).resolves.toBeUndefined()
})

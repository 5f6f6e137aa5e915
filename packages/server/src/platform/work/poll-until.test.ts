import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type PollOptions, type PollRead, pollUntil } from './poll-until.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** Returns when the reads of a wait began, and the last one. Each read takes `readMs`. */
async function readsOf(options: PollOptions, readMs = 0) {
  const began = performance.now()
  const times: number[] = []
  const last: PollRead[] = []
  const read = async (at: PollRead) => {
    times.push(performance.now() - began)
    last.push(at)
    if (readMs > 0) await new Promise((resolve) => setTimeout(resolve, readMs))
    return times.length
  }
  const polled = pollUntil(options, read, () => false)
  await vi.runAllTimersAsync()
  return { times, count: await polled, flags: last.map(({ isFirst, isLast }) => [isFirst, isLast]) }
}

test('the last pause is cut to what is left of the wait, and one read follows it', async () => {
  expect(await readsOf({ waitMs: 1_000, pollMs: 400 })).toMatchObject({ times: [0, 400, 800, 1_000], count: 4 })
})

test('pauses grow by their factor', async () => {
  const { times } = await readsOf({ waitMs: 5_000, pollMs: 200, growth: 2 })
  expect(times).toEqual([0, 200, 600, 1_400, 3_000, 5_000])
})

test('where reads take longer than the wait, no read follows, or one that knows that it is the last', async () => {
  expect((await readsOf({ waitMs: 1_000, pollMs: 400 }, 2_000)).times).toEqual([0])
  const { times, flags } = await readsOf({ waitMs: 1_000, pollMs: 400, lastRead: 'always' }, 2_000)
  expect(times).toEqual([0, 2_000])
  expect(flags).toEqual([
    [true, false],
    [false, true],
  ])
})

test('without a wait the first read is the last', async () => {
  expect((await readsOf({ waitMs: 0, pollMs: 400 })).flags).toEqual([[true, true]])
})

test('a timer that fires a millisecond early causes no further read', async () => {
  const real = globalThis.setTimeout
  vi.stubGlobal('setTimeout', (work: () => void, ms: number) => real(work, Math.max(0, ms - 1)))
  const { times } = await readsOf({ waitMs: 1_000, pollMs: 400 })
  vi.unstubAllGlobals()
  expect(times).toEqual([0, 399, 798, 999])
})

test('a final result ends the wait', async () => {
  const polled = pollUntil(
    { waitMs: 1_000, pollMs: 400 },
    async () => 'settled',
    (status) => status === 'settled',
  )
  expect(await polled).toBe('settled')
  expect(vi.getTimerCount()).toBe(0)
})

import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { instantOf } from '../clock.ts'
import { createLimiter } from '../http/limits.ts'
import { payForPages, replayCost } from './replay-cost.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** A caller with ten tokens at once and ten a second, whose clock is that of the timers. */
function aCaller() {
  const start = performance.now()
  const clock = { now: () => instantOf(Math.round(performance.now() - start)) }
  const limiter = createLimiter({ perSecond: 10, burst: 10 }, clock)
  return { owe: (cost: number) => limiter.owe('key_1', cost), left: () => limiter('key_1', 0).remaining }
}

const open = { isOpen: true }

/** Streams of a caller that replay pages of this cost without end; returns the number of pages that they have paid for. */
function replays({
  streams,
  cost,
  owe,
}: {
  readonly streams: number
  readonly cost: number
  readonly owe: (cost: number) => number
}) {
  const line = { isOpen: true }
  let pages = 0
  const replay = async (): Promise<void> => {
    const pay = payForPages(owe)
    while (line.isOpen) {
      pages += 1
      await pay(cost, line)
      await Promise.resolve()
      if (pages > 100_000) throw new Error('a replay is not limited')
    }
  }
  const ended = Promise.all(Array.from({ length: streams }, replay))
  return { pages: () => pages, line, ended }
}

test('each event counts its bytes, and at least those of its work', () => {
  expect(replayCost([{ length: 65_536 }, { length: 1 }], 32_768)).toBe(1.5)
})

test('a replay of less than a token costs no more than its request', async () => {
  const { owe, left } = aCaller()
  await payForPages(owe)(0.9, open)
  expect(left()).toBe(10)
})

test.each([1, 50])('%i streams of a caller replay as many pages as its rate permits, and not more', async (streams) => {
  const { owe } = aCaller()
  const { pages, line, ended } = replays({ streams, cost: 1, owe })
  await vi.advanceTimersByTimeAsync(0)
  const first = pages()
  expect(first).toBeLessThanOrEqual(streams + 11)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(pages() - first).toBeLessThanOrEqual(101)
  expect(pages() - first).toBeGreaterThan(90)
  line.isOpen = false
  await vi.advanceTimersByTimeAsync(1_000)
  await ended
})

test('a replay that may never go on ends with the stream', async () => {
  const line = { isOpen: true }
  const paid = payForPages(() => 600)(5, line)
  await vi.advanceTimersByTimeAsync(5_000)
  line.isOpen = false
  await vi.advanceTimersByTimeAsync(1_000)
  await expect(paid).resolves.toBeUndefined()
})

test('requests of the caller find half of the limit while its replays go on', async () => {
  const { owe, left } = aCaller()
  const { line, ended } = replays({ streams: 20, cost: 1, owe })
  const seen: number[] = []
  for (let second = 0; second < 20; second++) {
    await vi.advanceTimersByTimeAsync(1_000)
    seen.push(left())
  }
  // After the first pages, which the requests of the streams have paid for.
  expect(Math.min(...seen.slice(3))).toBeGreaterThanOrEqual(3)
  line.isOpen = false
  await vi.advanceTimersByTimeAsync(1_000)
  await ended
})

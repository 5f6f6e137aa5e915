import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createLog } from '../log.ts'
import { createPoller } from './poller.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** A poller whose reads are counted; `reads` says which of them fail, or have more to read. */
function aPoller(reads: readonly ('more' | 'fails')[] = []) {
  const done: ('all' | 'woken')[] = []
  const state = { isNeeded: true }
  const read = async (scope: 'all' | 'woken') => {
    const outcome = reads[done.push(scope) - 1]
    if (outcome === 'fails') throw new Error('no database')
    return { isMore: outcome === 'more', send: async () => undefined }
  }
  const poller = createPoller({
    log: createLog({ level: 'silent' }),
    failure: 'not read',
    isNeeded: () => state.isNeeded,
    readAll: () => read('all'),
    readWoken: () => read('woken'),
  })
  return { poller, done, state }
}

/** Lets the run that has started end. */
async function settled(): Promise<void> {
  for (let times = 0; times < 5; times++) await new Promise((resolve) => setImmediate(resolve))
}

test('a poller reads for all streams every 200 ms, and for the woken ones at once, without a delay of the others', async () => {
  const { poller, done } = aPoller()
  poller.start()
  vi.advanceTimersByTime(199)
  await settled()
  expect(done).toEqual([])
  poller.pollWoken()
  poller.pollWoken()
  await settled()
  expect(done).toEqual(['woken'])
  vi.advanceTimersByTime(1)
  await settled()
  expect(done).toEqual(['woken', 'all'])
  await poller.stop()
})

test('a read that leaves more is followed by another at once, and a failed one after two seconds', async () => {
  const { poller, done } = aPoller(['more', 'fails'])
  poller.pollAll()
  await settled()
  expect(done).toEqual(['all', 'all'])
  vi.advanceTimersByTime(1_999)
  await settled()
  expect(done).toHaveLength(2)
  vi.advanceTimersByTime(1)
  await settled()
  expect(done).toHaveLength(3)
  await poller.stop()
})

test('the timer does not run without an open stream, nor after the stop', async () => {
  const { poller, done, state } = aPoller()
  state.isNeeded = false
  poller.pollAll()
  await settled()
  expect([done.length, vi.getTimerCount()]).toEqual([1, 0])
  state.isNeeded = true
  poller.start()
  expect(vi.getTimerCount()).toBe(1)
  await poller.stop()
  poller.pollAll()
  poller.start()
  await settled()
  expect([done.length, vi.getTimerCount()]).toEqual([1, 0])
})

test('after a slow read the pause begins when its events are sent', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const sends: (() => void)[] = []
  let reads = 0
  const readAll = async () => {
    reads += 1
    return { isMore: false, send: () => new Promise<void>((resolve) => sends.push(resolve)) }
  }
  const poller = createPoller({
    log: createLog({ level: 'silent' }),
    failure: 'not read',
    isNeeded: () => true,
    readAll,
  })
  poller.pollAll()
  await settled()
  vi.advanceTimersByTime(1_000)
  sends[0]?.()
  await settled()
  vi.advanceTimersByTime(3_999)
  await settled()
  expect(reads).toBe(1)
  vi.advanceTimersByTime(1)
  await settled()
  expect(reads).toBe(2)
  sends[1]?.()
  await poller.stop()
})

import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { timeLimit } from '../src/time-limit.ts'

test('it aborts when the time is over, and with the caller’s signal and reason', async () => {
  const late = timeLimit(1, undefined)
  await expect.poll(() => late.signal.aborted).toBe(true)
  expect(late.signal.reason).toMatchObject({ name: 'TimeoutError' })
  const caller = new AbortController()
  const stopped = timeLimit(60_000, caller.signal)
  caller.abort('no longer needed')
  expect([stopped.signal.aborted, stopped.signal.reason]).toEqual([true, 'no longer needed'])
  stopped.end()
  const already = timeLimit(60_000, AbortSignal.abort('stopped before'))
  expect([already.signal.aborted, already.signal.reason]).toEqual([true, 'stopped before'])
  already.end()
})

test('a request that ended leaves no listener at a long-lived signal, and no timer', () => {
  const caller = new AbortController()
  const limit = timeLimit(1, caller.signal)
  expect(getEventListeners(caller.signal, 'abort')).toHaveLength(1)
  limit.end()
  expect(getEventListeners(caller.signal, 'abort')).toHaveLength(0)
  expect(limit.signal.aborted).toBe(false)
})

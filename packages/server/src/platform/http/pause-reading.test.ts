import { expect, test } from 'vitest'
import { createReadingPauses } from './pause-reading.ts'

function pausesAt() {
  const state = { now: 0 }
  return { state, pauses: createReadingPauses(() => state.now) }
}

test('the connections of an owner pause in turn, and one that would wait for long is refused', () => {
  const { state, pauses } = pausesAt()
  expect([pauses('a', 10_000), pauses('a', 10_000), pauses('a', 300_000)]).toEqual([1_000, 2_000, 32_000])
  expect(pauses('a', 1)).toBeUndefined()
  state.now = 2_000
  expect(pauses('a', 10)).toBe(30_001)
  state.now = 40_000
  expect(pauses('a', 10_000)).toBe(1_000)
})

test('owners share what a process takes, and none waits for the chunks of another', () => {
  const { state, pauses } = pausesAt()
  pauses('a', 400_000)
  expect(pauses('a', 1)).toBeUndefined()
  expect(pauses('b', 1_000)).toBe(200)
  expect(pauses('c', 1_000)).toBe(300)
  state.now = 50_000
  expect(pauses('b', 1_000)).toBe(100)
})

test('chunks of callers that were not admitted pause by themselves and delay no owner', () => {
  const { pauses } = pausesAt()
  for (let count = 0; count < 1_000; count += 1) expect(pauses(undefined, 9_900)).toBe(990)
  expect(pauses('a', 1_000)).toBe(100)
})

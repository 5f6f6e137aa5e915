import { expect, test } from 'vitest'
import { createRests } from './tiny-chunk-rests.ts'

function restsAt() {
  const state = { now: 0 }
  return { state, rests: createRests(() => state.now) }
}

test('the connections of an owner rest in turn, and one that would wait for long is refused', () => {
  const { state, rests } = restsAt()
  expect([rests('a', 10_000), rests('a', 10_000), rests('a', 300_000)]).toEqual([1_000, 2_000, 32_000])
  expect(rests('a', 1)).toBeUndefined()
  state.now = 2_000
  expect(rests('a', 10)).toBe(30_001)
  state.now = 40_000
  expect(rests('a', 10_000)).toBe(1_000)
})

test('owners share what a process takes, and none waits for the chunks of another', () => {
  const { state, rests } = restsAt()
  rests('a', 400_000)
  expect(rests('a', 1)).toBeUndefined()
  expect(rests('b', 1_000)).toBe(200)
  expect(rests('c', 1_000)).toBe(300)
  state.now = 50_000
  expect(rests('b', 1_000)).toBe(100)
})

test('chunks of callers that were not admitted rest by themselves and delay no owner', () => {
  const { rests } = restsAt()
  for (let count = 0; count < 1_000; count += 1) expect(rests(undefined, 9_900)).toBe(990)
  expect(rests('a', 1_000)).toBe(100)
})

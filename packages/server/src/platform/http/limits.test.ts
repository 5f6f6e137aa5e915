import { expect, test } from 'vitest'
import { createLimiter } from './limits.ts'

function aLimiter() {
  let now = 0
  const limiter = createLimiter({ perSecond: 1 / 60, burst: 20 }, { now: () => new Date(now) } as never)
  const admitted = (who: string, times = 1) =>
    Array.from({ length: times }, () => limiter(who).admitted).filter(Boolean).length
  return {
    admitted,
    pass(ms: number) {
      now += ms
    },
  }
}

test('100,000 other names reset no used-up limit, and are limited too', () => {
  const { admitted, pass } = aLimiter()
  expect(admitted('victim', 21)).toBe(20)
  let others = 0
  for (let name = 0; name < 150_000; name += 1) others += admitted(`other ${name}`)
  pass(1)
  expect(admitted('victim')).toBe(0)
  expect(others).toBeGreaterThanOrEqual(100_000)
  expect(others).toBeLessThan(130_000)
})

test('full buckets are dropped, so that later names have limits of their own', () => {
  const { admitted, pass } = aLimiter()
  for (let name = 0; name < 100_000; name += 1) admitted(`other ${name}`)
  pass(60_000)
  const first = admitted('a', 20)
  expect([first, admitted('a'), admitted('b', 20), admitted('b')]).toEqual([20, 0, 20, 0])
})

test('a long name is one name', () => {
  const { admitted } = aLimiter()
  const name = (end: string) => `${'x'.repeat(500)}${end}`
  expect([admitted(name('a'), 21), admitted(name('b'), 21)]).toEqual([20, 20])
})

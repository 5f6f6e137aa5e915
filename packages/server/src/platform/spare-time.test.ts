import { performance } from 'node:perf_hooks'
import { afterEach, expect, test, vi } from 'vitest'
import { measureSpareTime } from './spare-time.ts'

afterEach(() => void vi.restoreAllMocks())

/** Returns the measured function, with a clock that passes so many milliseconds, of which the event loop is busy for some. */
function aLoop() {
  let at = 0
  let active = 0
  vi.spyOn(performance, 'now').mockImplementation(() => at)
  vi.spyOn(performance, 'eventLoopUtilization').mockImplementation((now, before) => {
    if (now === undefined) return { active, idle: at - active, utilization: 0 }
    const busy = now.active - (before?.active ?? 0)
    const idle = now.idle - (before?.idle ?? 0)
    return { active: busy, idle, utilization: busy / (busy + idle) }
  })
  const hasSpareTime = measureSpareTime()
  return (ms: number, busyMs: number): boolean => {
    at += ms
    active += busyMs
    return hasSpareTime()
  }
}

test('an idle event loop has time to spare, and a busy one has none', () => {
  const pass = aLoop()
  expect(pass(50, 0)).toBe(false)
  expect(pass(50, 0)).toBe(true)
  expect(pass(100, 61)).toBe(false)
  expect(pass(100, 60)).toBe(true)
})

test('a measurement of more than a second counts for nothing, and the next one does', () => {
  const pass = aLoop()
  expect(pass(1_000, 0)).toBe(true)
  expect(pass(1_001, 0)).toBe(false)
  expect(pass(100, 0)).toBe(true)
})

test('a measurement counts for a tenth of a second', () => {
  const pass = aLoop()
  expect(pass(100, 0)).toBe(true)
  expect(pass(99, 99)).toBe(true)
  expect(pass(1, 1)).toBe(false)
})

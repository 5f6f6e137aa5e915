import { expect, test } from 'vitest'
import { nextAttemptAt, retryAfterMs, retryDelaysMs } from './send.ts'

const now = new Date('2026-05-01T12:00:00.000Z')
const hour = 3_600_000

function delayMs(step: number, byte: number, retryAfter?: string): number | undefined {
  const random = { bytes: (length: number) => new Uint8Array(length).fill(byte) }
  const at = nextAttemptAt({ step, retryAfter }, { now, random })
  return at === undefined ? undefined : at.getTime() - now.getTime()
}

test('a delivery is tried ten times within about 32 hours', () => {
  expect(retryDelaysMs.map((ms) => ms / 1_000)).toEqual([5, 30, 120, 600, 1_800, 7_200, 18_000, 36_000, 50_400])
  expect(delayMs(9, 0)).toBeUndefined()
  expect(Math.round(retryDelaysMs.reduce((sum, ms) => sum + ms, 0) / hour)).toBe(32)
})

test('every delay has a jitter of at most a tenth to either side', () => {
  for (const [step, planned] of retryDelaysMs.entries()) {
    expect(delayMs(step, 0)).toBe(Math.round(planned * 0.9))
    expect(delayMs(step, 255)).toBe(Math.round(planned * 1.1))
  }
})

test('Retry-After as seconds or as a date delays the next attempt, and never advances it', () => {
  expect(delayMs(0, 0, '60')).toBe(60_000)
  expect(delayMs(0, 0, 'Fri, 01 May 2026 12:10:00 GMT')).toBe(600_000)
  expect(delayMs(8, 0, '1')).toBe(12.6 * hour)
  expect(delayMs(0, 0, 'Fri, 01 May 2020 12:10:00 GMT')).toBe(4_500)
})

test('Retry-After is bounded by 14 hours', () => {
  expect(delayMs(0, 0, '999999999')).toBe(14 * hour)
  expect(delayMs(0, 0, 'Fri, 01 May 2099 12:10:00 GMT')).toBe(14 * hour)
})

test.each(['', '-1', '1.5', '0x10', '99999999999', '2026-05-01', 'Fri, 99 Foo 2026 12:10:00 GMT', '1e3', '٣'])(
  'a Retry-After of %j is ignored',
  (header) => {
    expect(retryAfterMs(header, now)).toBeUndefined()
  },
)

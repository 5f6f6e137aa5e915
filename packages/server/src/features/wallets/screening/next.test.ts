import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Screened } from '../../../partners/screening/port.ts'
import { dueAfter, isOnHold, nextStatus } from './next.ts'

const result = fc.constantFrom('pending', 'clear', 'flagged')
const ticket = fc.bigInt({ min: 0n, max: 100n })
const known = fc.record({ amlStatus: result, amlTicket: ticket })
const found = fc.record({ result, ticket, isCurrentList: fc.boolean() })

test('a flag is removed only by a clear result, from the current list, of a screening that began after the flag was set', () => {
  fc.assert(
    fc.property(known, found, (before, screening) => {
      const next = nextStatus({ ...before, amlStatus: 'flagged' }, screening)
      if (next !== 'clear' && next !== 'pending') return
      expect(next).toBe('clear')
      expect(screening).toMatchObject({ result: 'clear', isCurrentList: true })
      expect(screening.ticket >= before.amlTicket).toBe(true)
    }),
  )
})

test('nobody is cleared by a screening that did not clear', () => {
  fc.assert(
    fc.property(known, found, (before, screening) => {
      if (nextStatus(before, screening) === 'clear') expect(screening.result).toBe('clear')
    }),
  )
})

test('a result from an outdated list is discarded and screened again, and a flag from the current one is always stored', () => {
  fc.assert(
    fc.property(known, found, (before, screening) => {
      const next = nextStatus(before, screening)
      if (!screening.isCurrentList) expect(next).toBe('again')
      else if (screening.result === 'flagged') expect(next).toBe('flagged')
    }),
  )
})

const now = new Date('2026-11-20T12:00:00.000Z')

test('the next screening is within a day, and a thousand wallets are spread over two hours', () => {
  const hours = Array.from({ length: 1_000 }, (_, n) => {
    const due = dueAfter(now, { id: `byw_${n}x${n * 7}`, result: 'clear', sinceMs: 0 })
    return (due.getTime() - now.getTime()) / 3_600_000
  })
  expect(Math.max(...hours)).toBeLessThanOrEqual(24)
  expect(Math.min(...hours)).toBeGreaterThan(22)
  const quarters = new Set(hours.map((hour) => Math.floor(hour * 4)))
  expect(quarters.size).toBe(8)
})

test('a pending address is screened again after a minute, later after an hour at most', () => {
  const waits = [0, 60_000, 600_000, 36_000_000].map(
    (sinceMs) => dueAfter(now, { id: 'byw_x', result: 'pending', sinceMs }).getTime() - now.getTime(),
  )
  expect(waits).toEqual([60_000, 60_000, 150_000, 3_600_000])
})

const dayMs = 86_400_000

test.each([
  { oracle: 'failed', againMs: 3_600_000 },
  { oracle: 'clean', againMs: 10 * dayMs },
  { oracle: 'none', againMs: 10 * dayMs },
] as const)(
  'a pending address of 40 days is screened after $againMs ms where the oracle is $oracle',
  ({ oracle, againMs }) => {
    const due = dueAfter(now, { id: 'wtx_1', result: 'pending', sinceMs: 40 * dayMs, oracle })
    expect(due.getTime() - now.getTime()).toBe(againMs)
  },
)

const screened = fc.record<Screened>({
  result: fc.constantFrom('pending', 'clear', 'flagged'),
  reason: fc.constantFrom('listed', 'list-stale', 'oracle-failed', 'oracle-unknown', 'oracle-not-configured', 'clean'),
  oracle: fc.constantFrom('clean', 'sanctioned', 'failed', 'none', 'unknown'),
})

test('only pending money is on hold, and never if the oracle gave a result or a fresh list did and the oracle was queried', () => {
  fc.assert(
    fc.property(screened, (found) => {
      if (found.result !== 'pending') expect(isOnHold(found)).toBe(false)
      if (found.oracle === 'clean' && found.reason !== 'oracle-unknown') expect(isOnHold(found)).toBe(false)
      const isFresh = found.reason !== 'list-stale' && found.reason !== 'oracle-unknown'
      if (isFresh) expect(isOnHold(found)).toBe(false)
    }),
  )
})

test('an address that the sandbox reports as pending keeps its money on hold, and one that it clears does not', () => {
  expect(isOnHold({ result: 'pending', reason: 'sandbox', oracle: 'clean', simulatesNoSource: true })).toBe(true)
  expect(isOnHold({ result: 'clear', reason: 'sandbox', oracle: 'failed' })).toBe(false)
})

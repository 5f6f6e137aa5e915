import { expect, test } from 'vitest'
import type { PayoutState } from '../../../partners/offramp/port.ts'
import { progressOf } from './progress.ts'

const states: readonly PayoutState[] = ['pending_conversion', 'conversion_complete', 'completed', 'failed']

test('a payout only moves forward, and a failure is final; a completed one may still be returned', () => {
  const table = states.map((known) => states.map((seen) => progressOf(known, seen)))
  expect(table).toEqual([
    ['same', 'forward', 'forward', 'forward'],
    ['stale', 'same', 'forward', 'forward'],
    ['stale', 'stale', 'same', 'returned'],
    ['stale', 'stale', 'stale', 'same'],
  ])
})

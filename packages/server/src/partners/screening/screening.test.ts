import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Screened } from './port.ts'
import { type AddressFacts, oracleResult, verdictOf } from './screening.ts'

const environments = ['test', 'live'] as const
const flagged = (reason: Screened['reason'], oracle: AddressFacts['oracle']): Screened => ({
  result: 'flagged',
  reason,
  oracle,
})
const facts = fc.record<AddressFacts>({
  isListed: fc.boolean(),
  isListStale: fc.boolean(),
  oracle: fc.constantFrom('clean', 'sanctioned', 'failed', 'none'),
})

test('a stale list, a failing oracle, and in live a missing oracle, never clear an address', () => {
  fc.assert(
    fc.property(facts, fc.constantFrom(...environments), (found, environment) => {
      const { result } = verdictOf(found, environment)
      const isMissing = found.oracle === 'none' && environment === 'live'
      if (found.isListStale || found.oracle === 'failed' || isMissing) expect(result).not.toBe('clear')
    }),
  )
})

test.each<[AddressFacts, Screened]>([
  [{ isListed: true, isListStale: false, oracle: 'clean' }, flagged('listed', 'clean')],
  [{ isListed: true, isListStale: true, oracle: 'failed' }, flagged('listed', 'failed')],
  [{ isListed: true, isListStale: true, oracle: 'none' }, flagged('listed', 'none')],
  [{ isListed: true, isListStale: false, oracle: 'sanctioned' }, flagged('listed', 'sanctioned')],
  [{ isListed: false, isListStale: false, oracle: 'sanctioned' }, flagged('oracle-sanctioned', 'sanctioned')],
  [{ isListed: false, isListStale: true, oracle: 'sanctioned' }, flagged('oracle-sanctioned', 'sanctioned')],
])('an address is flagged if the list or the oracle names it, whatever else is missing: %o', (found, expected) => {
  for (const environment of environments) expect(verdictOf(found, environment)).toEqual(expected)
})

test.each<[AddressFacts, Screened]>([
  [
    { isListed: false, isListStale: false, oracle: 'clean' },
    { result: 'clear', reason: 'clean', oracle: 'clean' },
  ],
  [
    { isListed: false, isListStale: true, oracle: 'clean' },
    { result: 'pending', reason: 'list-stale', oracle: 'clean' },
  ],
  [
    { isListed: false, isListStale: false, oracle: 'failed' },
    { result: 'pending', reason: 'oracle-failed', oracle: 'failed' },
  ],
  [
    { isListed: false, isListStale: false, oracle: 'unknown' },
    { result: 'pending', reason: 'oracle-unknown', oracle: 'unknown' },
  ],
])('an address that neither names is not flagged: %o', (found, expected) => {
  for (const environment of environments) expect(verdictOf(found, environment)).toEqual(expected)
})

test('a fresh list and an oracle’s answer clear; in test, without a mainnet node, the list alone does', () => {
  const clean = { isListed: false, isListStale: false } as const
  expect(verdictOf({ ...clean, oracle: 'clean' }, 'live')).toMatchObject({ result: 'clear', reason: 'clean' })
  expect(verdictOf({ ...clean, oracle: 'none' }, 'test').result).toBe('clear')
  expect(verdictOf({ ...clean, oracle: 'none' }, 'live').reason).toBe('oracle-not-configured')
})

test('of two oracles, one `sanctioned` is enough, and clean needs both', () => {
  expect(oracleResult([])).toBe('none')
  expect(oracleResult([false, false])).toBe('clean')
  expect(oracleResult([false, undefined])).toBe('failed')
  expect(oracleResult([true, undefined])).toBe('sanctioned')
  expect(oracleResult([false, true])).toBe('sanctioned')
})

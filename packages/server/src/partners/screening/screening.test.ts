import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { type AddressFacts, oracleResult, verdictOf } from './screening.ts'

const environments = ['test', 'live'] as const
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

test('evidence against an address counts whatever else is missing', () => {
  fc.assert(
    fc.property(facts, fc.constantFrom(...environments), (found, environment) => {
      const isAgainst = found.isListed || found.oracle === 'sanctioned'
      expect(verdictOf(found, environment).result === 'flagged').toBe(isAgainst)
    }),
  )
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

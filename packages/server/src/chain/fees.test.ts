import { networkByName } from '@purser/protocol'
import { expect, test } from 'vitest'
import { feeLimits, firstFees, replacementFees } from './fees.ts'

const gwei = 1_000_000_000n
const base = networkByName('base')
if (base === undefined) throw new Error('no such network')
const limits = feeLimits(base)

test('a first offer leaves room for the base fee to double', () => {
  expect(firstFees(10n * gwei, gwei, limits)).toEqual({ maxFee: 21n * gwei, priorityFee: gwei })
})

test('a node that asks for an absurd tip or tells an absurd base fee gets no more than the limit', () => {
  expect(firstFees(gwei, 10n ** 30n, limits).priorityFee).toBe(limits.priorityFee)
  expect(firstFees(10n ** 30n, gwei, limits).maxFee).toBe(limits.maxFee)
})

test('replacements rise by an eighth on both fees, as nodes ask, and stop at the limit however often they are asked for', () => {
  let fees = firstFees(gwei, gwei, limits)
  let turns = 0
  for (let next = replacementFees(fees, fees, limits); next !== undefined; next = replacementFees(fees, fees, limits)) {
    expect(next.maxFee * 8n).toBeGreaterThanOrEqual(fees.maxFee * 9n)
    expect(next.priorityFee * 8n).toBeGreaterThanOrEqual(fees.priorityFee * 9n)
    fees = next
    turns += 1
    if (turns > 1_000) throw new Error('no end')
  }
  expect(turns).toBeGreaterThan(5)
  expect(fees.maxFee).toBeLessThanOrEqual(limits.maxFee)
  expect(fees.priorityFee).toBeLessThanOrEqual(limits.priorityFee)
})

test('a replacement offers what a first try would offer now, if that is more', () => {
  const fresh = firstFees(100n * gwei, gwei, limits)
  expect(replacementFees(firstFees(gwei, gwei, limits), fresh, limits)?.maxFee).toBe(fresh.maxFee)
})

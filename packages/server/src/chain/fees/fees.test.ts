import { networkByName } from '@purser/protocol'
import { expect, test } from 'vitest'
import { firstFees, replacementFees } from './fees.ts'

const gwei = 1_000_000_000n
const base = networkByName('base')
if (base === undefined) throw new Error('no such network')
const limits = base.gasFees

test('the first fee offer lets the base fee double', () => {
  expect(firstFees(10n * gwei, gwei, limits)).toEqual({ maxFee: 21n * gwei, priorityFee: gwei })
})

test('an absurd tip or base fee from a node is capped at the limit', () => {
  expect(firstFees(gwei, 10n ** 30n, limits).priorityFee).toBe(limits.priorityFee)
  expect(firstFees(10n ** 30n, gwei, limits).maxFee).toBe(limits.maxFee)
})

test('each replacement raises both fees by an eighth, as nodes require, and never exceeds the limit', () => {
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

test('a replacement offers the current first offer if that is higher', () => {
  const fresh = firstFees(100n * gwei, gwei, limits)
  expect(replacementFees(firstFees(gwei, gwei, limits), fresh, limits)?.maxFee).toBe(fresh.maxFee)
})

import { networkByName } from '@purser/protocol'
import { expect, test } from 'vitest'
import { oneNanoUsdPerGas } from '../../../test/test-config.ts'
import { gasPaidBy } from './credential.ts'

const network = networkByName('base')
const token = network?.tokens.find(({ symbol }) => symbol === 'USDC')

/** The grant of a payment of one dollar where a million gas costs this much, in billionths of a dollar. */
function grantAt(cost: bigint | undefined): string | undefined {
  if (network === undefined || token === undefined) throw new Error('base has USDC')
  const ctx = { settleMicroUsdMin: 1_000n, gasPrices: { ...oneNanoUsdPerGas, lowestKnownCostOf: () => cost } }
  return gasPaidBy(ctx, { network, token, raw: 1_000_000n }, 400_000n)
}

test('a payment is granted the gas that it pays for, if that is less than the usual grant', () => {
  expect(grantAt(10_000_000_000n)).toBe('100000')
  expect(grantAt(1_000_000_000n)).toBe(undefined)
})

test('gas that the operator values at nothing has no limit, and gas whose price no node has reported is unavailable', () => {
  expect(grantAt(0n)).toBe(undefined)
  expect(() => grantAt(undefined)).toThrow(expect.objectContaining({ code: 'chain-unavailable' }))
})

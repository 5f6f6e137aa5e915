import { networkByName } from '@purser/protocol'
import { expect, test } from 'vitest'
import type { Chain } from '../../chain/port.ts'
import { instantOf } from '../../platform/clock.ts'
import { createLog } from '../../platform/log.ts'
import { shippedCoinPrices } from './coin-prices.ts'
import { createGasPrices } from './gas-prices.ts'

const base = networkByName('base')
if (base === undefined) throw new Error('Base is a network')
const gas = 70_000n

test('before any node has reported a gas price, budgets assume a high one and no price is refused for it', async () => {
  let answer: (weiPerGas: bigint) => void = () => {}
  const baseFee = new Promise<bigint>((resolve) => {
    answer = resolve
  })
  const node = {
    offeredFees: async () => ({ baseFee: await baseFee, priorityFee: 0n, l1Fee: 0n }),
  } as unknown as Chain
  const chains = { configured: [base], on: () => node }
  const clock = { now: () => instantOf('2026-11-23T00:00:00.000Z') }
  const prices = createGasPrices({ chains, clock, log: createLog({ level: 'silent' }) }, shippedCoinPrices)

  expect([prices.costOf(base, gas), prices.knownCostOf(base, gas)]).toEqual([420_000_000n, 0n])
  answer(10_000_000n)
  await expect.poll(() => prices.knownCostOf(base, gas)).toBe(2_100_000n)
  expect(prices.costOf(base, gas)).toBe(2_100_000n)
})

import { networkByName } from '@purser/protocol'
import { expect, test } from 'vitest'
import type { Chain } from '../../chain/port.ts'
import { instantOf } from '../../platform/clock.ts'
import { createLog } from '../../platform/log.ts'
import { areStale, createGasPrices, parseCoinPrices, priceOfCoin, shippedCoinPrices } from './gas-prices.ts'

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

function priced(text: string) {
  const prices = parseCoinPrices(text)
  if ('fault' in prices) throw new Error(prices.fault)
  return prices
}

function priceOn(name: string, text: string): bigint {
  const network = networkByName(name)
  if (network === undefined) throw new Error('no such network')
  return priceOfCoin(priced(text), network)
}

test('prices are read to the millionth of a dollar, and an omitted coin keeps the default price', () => {
  expect(priced('2026-11-22,ETH=3141.5,POL=0.000001')).toEqual({
    date: '2026-11-22',
    microUsd: { ...shippedCoinPrices.microUsd, ETH: 3_141_500_000n, POL: 1n },
  })
  expect(priced(' 2024-02-29 , tETH=2 ').microUsd).toEqual({ ...shippedCoinPrices.microUsd, tETH: 2_000_000n })
})

test.each([
  ['', 'does not begin with a date'],
  ['ETH=3000', 'does not begin with a date'],
  ['2026-02-30,ETH=3000', 'does not begin with a date'],
  ['2026-11-22', 'names no coin'],
  ['2026-11-22,BTC=1', 'has BTC=1'],
  ['2026-11-22,toString=1', 'has toString=1'],
  ['2026-11-22,ETH=-1', 'has ETH=-1'],
  ['2026-11-22,ETH=1e3', 'has ETH=1e3'],
  ['2026-11-22,ETH=0.0000001', 'has ETH=0.0000001'],
  ['2026-11-22,ETH=3000,', 'has '],
])('%j is refused with its fault', (text, fault) => {
  expect(parseCoinPrices(text)).toEqual({ fault })
})

test('a test network has the price of its own coin, and Tempo that of a dollar', () => {
  const text = '2026-11-22,ETH=3000,tETH=2,POL=0.25,tPOL=0.5'
  const networks = ['base', 'base-sepolia', 'polygon', 'polygon-amoy', 'tempo']
  const prices = [3_000_000_000n, 2_000_000n, 250_000n, 500_000n, 1_000_000n]
  expect(networks.map((name) => priceOn(name, text))).toEqual(prices)
})

test('prices are stale once they are more than 30 days old', () => {
  const prices = priced('2026-10-24,ETH=1')
  expect(areStale(prices, new Date('2026-11-23T00:00:00.000Z'))).toBe(false)
  expect(areStale(prices, new Date('2026-11-23T00:00:00.001Z'))).toBe(true)
})

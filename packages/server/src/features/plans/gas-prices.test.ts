import { type Network, networkByName } from '@purser/protocol'
import { expect, test } from 'vitest'
import type { Chain } from '../../chain/port.ts'
import { instantOf } from '../../platform/clock.ts'
import { createLog } from '../../platform/log.ts'
import { areStale, createGasPrices, parseCoinPrices, priceOfCoin, shippedCoinPrices } from './gas-prices.ts'

const base = served('base')
const gas = 70_000n

test('before any node has reported a gas price, budgets assume a high one, and no price is refused for it', async () => {
  let response: (weiPerGas: bigint) => void = () => {}
  const baseFee = new Promise<bigint>((resolve) => {
    response = resolve
  })
  const node = {
    offeredFees: async () => ({ baseFee: await baseFee, priorityFee: 0n, l1Fee: 0n, dataGas: 0n }),
  } as unknown as Chain
  const chains = { configured: [base], on: () => node }
  const clock = { now: () => instantOf('2026-11-23T00:00:00.000Z') }
  const prices = createGasPrices({ chains, clock, log: createLog({ level: 'silent' }) }, shippedCoinPrices)

  expect([prices.costOf(base, gas), prices.knownCostOf(base, gas)]).toEqual([420_000_000n, 0n])
  expect(prices.lowestKnownCostOf(base, gas)).toBe(undefined)
  const first = prices.recentReads([base, served('optimism')])
  response(10_000_000n)
  await first
  expect(prices.knownCostOf(base, gas)).toBe(2_100_000n)
  expect(prices.knownCostOf(served('optimism'), gas), 'a network without nodes').toBe(0n)
  expect(prices.costOf(base, gas)).toBe(2_100_000n)
})

test('a network whose nodes do not respond delays the first offers for two seconds', async () => {
  const node = { offeredFees: () => new Promise(() => {}) } as unknown as Chain
  const clock = { now: () => instantOf('2026-11-23T00:00:00.000Z') }
  const deps = { chains: { configured: [base], on: () => node }, clock, log: createLog({ level: 'silent' }) }
  const from = performance.now()
  await createGasPrices(deps, shippedCoinPrices).recentReads([base])
  const waitedMs = performance.now() - from
  expect(waitedMs).toBeGreaterThan(1_900)
  expect(waitedMs).toBeLessThan(20_000)
})

/** Prices that are read from one node at instants that the test sets, in seconds. */
function aTimeline() {
  const state = { seconds: 0, baseFee: 0n as bigint | undefined }
  const offeredFees = async () => {
    if (state.baseFee === undefined) throw new Error('the node is down')
    return { baseFee: state.baseFee, priorityFee: 0n, l1Fee: 0n, dataGas: 0n }
  }
  const chains = { configured: [base], on: () => ({ offeredFees }) as unknown as Chain }
  const clock = { now: () => instantOf(Date.parse('2026-11-23T00:00:00.000Z') + state.seconds * 1_000) }
  const prices = createGasPrices({ chains, clock, log: createLog({ level: 'silent' }) }, shippedCoinPrices)
  return {
    prices,
    /** Reads this price, or fails to read one, from now on until this many seconds have passed. */
    async reads(baseFee: bigint | undefined, { forSeconds, every = 30 }: { forSeconds: number; every?: number }) {
      state.baseFee = baseFee
      for (let passed = 0; passed < forSeconds; passed += every) {
        prices.costOf(base, gas)
        await new Promise(setImmediate)
        state.seconds += every
      }
    },
  }
}

/** Costs in billionths of a dollar of the gas at these prices: 10 million and a billion wei. */
const [cheap, costly] = [2_100_000n, 210_000_000n]

test('the least cost is that of the cheapest price within the life of a challenge, and afterwards the higher one', async () => {
  const { prices, reads } = aTimeline()
  await reads(10_000_000n, { forSeconds: 600 })
  expect(prices.leastCostOf(base, gas)).toBe(cheap)
  await reads(1_000_000_000n, { forSeconds: 330 })
  expect([prices.knownCostOf(base, gas), prices.leastCostOf(base, gas)]).toEqual([costly, cheap])
  await reads(1_000_000_000n, { forSeconds: 120 })
  expect(prices.leastCostOf(base, gas)).toBe(costly)
  await reads(10_000_000n, { forSeconds: 60 })
  expect(prices.leastCostOf(base, gas)).toBe(cheap)
})

test('the lowest known cost is that of the last minutes, and then the last one', async () => {
  const { prices, reads } = aTimeline()
  await reads(10_000_000n, { forSeconds: 20 })
  await reads(1_000_000_000n, { forSeconds: 120 })
  expect(prices.lowestKnownCostOf(base, gas)).toBe(cheap)
  await reads(1_000_000_000n, { forSeconds: 30 })
  await reads(undefined, { forSeconds: 1_200, every: 1_200 })
  expect(prices.lowestKnownCostOf(base, gas)).toBe(costly)
})

test('the least cost is a quarter of the lowest one unless the prices of all of the life of a challenge are known', async () => {
  const started = aTimeline()
  await started.reads(1_000_000_000n, { forSeconds: 300 })
  expect(started.prices.leastCostOf(base, gas), 'a process that started a moment ago').toBe(costly / 4n)
  await started.reads(1_000_000_000n, { forSeconds: 90 })
  expect(started.prices.leastCostOf(base, gas)).toBe(costly)

  const idle = aTimeline()
  await idle.reads(1_000_000_000n, { forSeconds: 600 })
  await idle.reads(1_000_000_000n, { forSeconds: 61, every: 61 })
  await idle.reads(1_000_000_000n, { forSeconds: 240 })
  expect(idle.prices.leastCostOf(base, gas), 'a process that read nothing for more than a minute').toBe(costly / 4n)

  const down = aTimeline()
  await down.reads(1_000_000_000n, { forSeconds: 600 })
  await down.reads(undefined, { forSeconds: 90 })
  await down.reads(1_000_000_000n, { forSeconds: 240 })
  expect(down.prices.leastCostOf(base, gas), 'a node that was down for a while').toBe(costly / 4n)
  await down.reads(1_000_000_000n, { forSeconds: 180 })
  expect(down.prices.leastCostOf(base, gas)).toBe(costly)
})

function priced(text: string) {
  const prices = parseCoinPrices(text)
  if ('fault' in prices) throw new Error(prices.fault)
  return prices
}

function priceOn(name: string, text: string): bigint {
  return priceOfCoin(priced(text), served(name))
}

function served(name: string): Network {
  const network = networkByName(name)
  if (network === undefined) throw new Error('no such network')
  return network
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

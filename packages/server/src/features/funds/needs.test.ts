import fc from 'fast-check'
import { expect, test } from 'vitest'
import { feeInToken } from '../../chain/fees/costs.ts'
import { contendedBy, retryOnContention, shortagesOf, topUpOf } from './needs.ts'

const usdc = { symbol: 'USDC', decimals: 6, address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e' } as const
const ether = { symbol: 'ETH', decimals: 18, address: undefined } as const
const amount = fc.bigInt({ min: 0n, max: 10n ** 30n })

test('a shortage of one unit is reported as one unit, and a wallet with enough has no shortage', () => {
  expect(shortagesOf([{ coin: usdc, required: 5_000_000n, available: 4_999_999n }])).toEqual([
    { token: 'USDC', required: '5', available: '4.999999' },
  ])
  expect(shortagesOf([{ coin: usdc, required: 5n, available: 5n }])).toEqual([])
})

test('money that waits for the screening of its sender is reported separately, and omitted where there is none', () => {
  const need = { coin: usdc, required: 5_000_000n, available: 2_000_000n }
  const reported = { token: 'USDC', required: '5', available: '2' }
  expect(shortagesOf([{ ...need, held: 3_500_000n }])).toEqual([{ ...reported, held: '3.5' }])
  expect(shortagesOf([{ ...need, held: 0n }])).toEqual([reported])
})

test('gas and amount of one coin count together', () => {
  const needs = [
    { coin: ether, required: 6n, available: 10n },
    { coin: ether, required: 5n, available: 10n },
  ]
  expect(shortagesOf(needs)).toEqual([
    { token: 'ETH', required: '0.000000000000000011', available: '0.00000000000000001' },
  ])
})

test('a wallet that reserved more than its balance has nothing available', () => {
  expect(shortagesOf([{ coin: usdc, required: 1n, available: -7n }])[0]?.available).toBe('0')
})

test('a fee in a token of six decimals is never rounded down', () => {
  fc.assert(
    fc.property(amount, amount, (gas, price) => {
      const fee = feeInToken(gas, price, 6)
      expect(fee * 10n ** 12n).toBeGreaterThanOrEqual(gas * price)
      expect((fee - 1n) * 10n ** 12n).toBeLessThan(gas * price === 0n ? 1n : gas * price)
    }),
  )
})

test('a top-up covers the gas of the child’s call, with at most twice that gas, and is zero for a child that has enough', () => {
  fc.assert(
    fc.property(amount, amount, amount, (gas, value, spare) => {
      const native = value + spare
      const sent = topUpOf({ gas, value, native })
      expect(native + sent).toBeGreaterThanOrEqual(value + gas)
      expect(sent).toBeLessThanOrEqual(gas * 2n)
      if (spare >= gas) expect(sent).toBe(0n)
    }),
  )
})

test('a top-up does not pay for the amount that a child sends, except for what earlier gas took of it', () => {
  const terms = { gas: 10n, value: 1_000n }
  expect(topUpOf({ ...terms, native: 1_004n })).toBe(16n)
  expect(topUpOf({ ...terms, native: 990n })).toBe(20n)
  expect(topUpOf({ ...terms, native: 989n })).toBe(0n)
  expect(topUpOf({ ...terms, native: 0n })).toBe(0n)
})

test('work that other requests keep from its money for ten seconds is refused for now and not for too little money', async () => {
  let seconds = 0
  const clock = { now: () => new Date(1_800_000_000_000 + seconds * 1_000), newUuid: () => crypto.randomUUID() }
  const work = async (): Promise<never> => {
    seconds += 4
    throw contendedBy({ coin: usdc, rawAmount: 5n, feeCoin: ether, rawFee: 1n })
  }
  await expect(retryOnContention({ clock }, work)).rejects.toMatchObject({ code: 'service-unavailable' })
  expect(seconds).toBe(12)
})

import { type Network, networkByName } from '@purser/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { newId } from '../../platform/ids.ts'
import { type FloorTerms, floorOf, floorOfQuote } from './plan.ts'
import type { Ctx } from './ports.ts'

// Tokens of the registry have 6 decimals today; a floor that mixes up the decimals of its two sides is off by factors of ten.

const network: Network = networkNamed('base')
const address = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913'
const toAddress = '0x00000000000000000000000000000000000000aa'
const ctx = { clock: { now: () => new Date(0) } } as unknown as Ctx
const walletId = newId('mwt', { clock: ctx.clock, random: { bytes: (count) => new Uint8Array(count) } })

function networkNamed(name: string): Network {
  const found = networkByName(name)
  if (found === undefined) throw new Error('no such network')
  return found
}

function terms(decimals: number, toDecimals: number, rawAmount: bigint, minToAmount?: string): FloorTerms {
  const usual = { fromChain: 'base', fromToken: 'USDC', toChain: 'base', toToken: 'USDT', amount: '1' } as const
  return {
    request: { ...usual, fromWalletId: walletId, toAddress, ...(minToAmount === undefined ? {} : { minToAmount }) },
    source: { id: walletId },
    network,
    target: network,
    coin: { symbol: 'USDC', decimals, address },
    toCoin: { symbol: 'USDT', decimals: toDecimals, address },
    rawAmount,
    choice: { route: 'partner-swap', partner: 'lifi', why: '' },
  }
}

test.each([
  [6, 6, 50_000_000n, 49_000_000n],
  [6, 18, 50_000_000n, 49n * 10n ** 18n],
  [18, 6, 50n * 10n ** 18n, 49_000_000n],
  [18, 2, 10n ** 18n, 98n],
  [2, 18, 1n, 98n * 10n ** 14n],
  [0, 6, 3n, 2_940_000n],
  // Rounded up: a floor of zero would accept nothing at all.
  [18, 6, 1n, 1n],
  [6, 0, 1n, 1n],
  [6, 6, 1n, 1n],
  [18, 18, 10n ** 30n + 1n, 98n * 10n ** 28n + 1n],
])('from %i to %i decimals the floor of %i is 98 % of par, rounded up', async (decimals, toDecimals, raw, floor) => {
  expect(await floorOf(ctx, terms(decimals, toDecimals, raw))).toBe(floor)
  expect(await floorOfQuote(ctx, terms(decimals, toDecimals, raw))).toBe(floor)
})

test('between tokens of any decimals the floor is the least amount that is worth 98 % of what is sent', async () => {
  const decimals = fc.integer({ min: 0, max: 30 })
  await fc.assert(
    fc.asyncProperty(decimals, decimals, fc.bigInt({ min: 1n, max: 10n ** 40n }), async (from, to, rawAmount) => {
      const floor = await floorOf(ctx, terms(from, to, rawAmount))
      const [sent, unit] = [rawAmount * 98n * 10n ** BigInt(to), 100n * 10n ** BigInt(from)]
      expect(floor * unit >= sent).toBe(true)
      expect((floor - 1n) * unit < sent).toBe(true)
    }),
    { numRuns: 2_000 },
  )
})

test('a named minimum counts in the decimals of what arrives, and may have no more of them', async () => {
  expect(await floorOf(ctx, terms(6, 18, 50_000_000n, '0.000000000000000001'))).toBe(1n)
  expect(await floorOf(ctx, terms(18, 6, 50n, '49.000001'))).toBe(49_000_001n)
  await expect(floorOf(ctx, terms(18, 6, 50n, '0.0000001'))).rejects.toMatchObject({ code: 'validation-error' })
})

test('a direct transfer that would arrive one unit below the floor is refused', async () => {
  const direct = { ...terms(6, 6, 49_000_000n, '49.000001'), choice: { route: 'direct', why: '' } as const }
  await expect(floorOf(ctx, direct)).rejects.toMatchObject({ code: 'price-too-low' })
  expect(await floorOf(ctx, { ...direct, rawAmount: 49_000_001n })).toBe(49_000_001n)
})

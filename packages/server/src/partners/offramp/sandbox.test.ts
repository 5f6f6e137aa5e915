import { expect, test } from 'vitest'
import { instantOf } from '../../platform/clock.ts'
import type { NewPayout, PayoutState } from './port.ts'
import { createSandboxOffRamp, sandboxMs } from './sandbox.ts'

const startMs = Date.parse('2026-11-22T00:00:00Z')

function aSandbox() {
  const held = new Map<string, bigint>()
  let nowMs = startMs
  const clock = { now: () => instantOf(nowMs) }
  const balanceOf = async (network: string, token: string, account: string) =>
    held.get(`${network} ${token} ${account}`.toLowerCase()) ?? 0n
  return {
    ramp: createSandboxOffRamp({ clock, balanceOf }),
    other: createSandboxOffRamp({ clock, balanceOf }),
    after: (ms: number) => {
      nowMs = startMs + ms
    },
    deposit: (request: NewPayout, address: string, raw: bigint) =>
      held.set(`${request.network} ${request.token.address} ${address}`.toLowerCase(), raw),
  }
}

const requestOf = (rawAmount: bigint): NewPayout => ({
  key: 'wdr_01h455vb4pex5vsknk084sn02q',
  customerId: '',
  requestedAt: instantOf(startMs),
  accountId: 'sandbox_bac',
  currency: 'GBP',
  network: 'base-sepolia',
  token: { symbol: 'USDC', address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', decimals: 6 },
  rawAmount,
  fromAddress: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
})

async function begun(rawAmount: bigint) {
  const stage = aSandbox()
  const request = requestOf(rawAmount)
  const agreed = await stage.ramp.createPayout(request)
  if (!agreed.ok) throw new Error(agreed.refusal.code)
  const { payoutId, deposit } = agreed.value
  return { ...stage, request, payoutId, address: deposit?.address ?? '' }
}

test('a payout stays pending until the full amount has arrived', async () => {
  const { ramp, deposit, request, payoutId, address, after } = await begun(60_000_000n)
  after(sandboxMs.returned)
  deposit(request, address, 59_999_999n)
  expect(await ramp.readPayout(payoutId, request)).toMatchObject({ state: 'pending_conversion', awaitsDeposit: true })
  deposit(request, address, 60_000_000n)
  expect(await ramp.readPayout(payoutId, request)).toMatchObject({ state: 'completed', awaitsDeposit: false })
})

test.each([
  [60_000_000n, ['pending_conversion', 'conversion_complete', 'completed', 'completed']],
  [60_010_000n, ['pending_conversion', 'conversion_complete', 'failed', 'failed']],
  [60_020_000n, ['pending_conversion', 'conversion_complete', 'completed', 'failed']],
  [60_030_000n, ['pending_conversion', 'pending_conversion', 'pending_conversion', 'pending_conversion']],
])('%d units go through %j', async (rawAmount, expected) => {
  const { ramp, deposit, request, payoutId, address, after } = await begun(rawAmount)
  deposit(request, address, rawAmount)
  const seen: (PayoutState | undefined)[] = []
  for (const ms of [0, sandboxMs.converted, sandboxMs.ended, sandboxMs.returned]) {
    after(ms)
    seen.push((await ramp.readPayout(payoutId, request))?.state)
  }
  expect(seen).toEqual(expected)
})

test('an amount that ends in .04 is refused', async () => {
  expect(await aSandbox().ramp.createPayout(requestOf(60_040_000n))).toMatchObject({
    ok: false,
    refusal: { code: 'account-closed' },
  })
})

test('a repeat, also by another process, returns the same payout and address', async () => {
  const { ramp, other, request, payoutId } = await begun(60_000_000n)
  for (const one of [ramp, other]) expect(await one.createPayout(request)).toMatchObject({ value: { payoutId } })
  expect(await other.readPayout(payoutId, request)).toEqual(await ramp.readPayout(payoutId, request))
  const another = await begun(61_000_000n)
  expect(another.payoutId).not.toBe(payoutId)
})

test('an unknown payout is undefined', async () => {
  const { ramp } = aSandbox()
  for (const id of ['', 'sandbox_', 'sandbox_e30', 'transfer_123'])
    expect(await ramp.readPayout(id, requestOf(1n))).toBeUndefined()
})

import type { PaymentPayload, PaymentRequirements } from '@x402/core/types'
import type { Address } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { z } from 'zod'
import { sql } from '../../server/src/platform/db/db.ts'
import { type Facilitator, facilitatorOf } from '../../server/test/facilitated.ts'
import { aWorld, codeOf, countByStatus, type Org, type World } from '../../server/test/world.ts'
import { type DevChain, fundNative, fundToken, startChain, tokenBalance } from '../src/index.ts'
import { Logged, transferTo } from './official-permit2-calls.ts'
import { aPermit2Payer, type Permit2Payer, requirementsOf, usdcOf } from './official-permit2-payers.ts'

// What a seller or a payer tries with a metered payment between its verification and its settlement.

let chain: DevChain
let world: World
let org: Org
let facilitator: Facilitator
let master: { readonly id: string; readonly address: Address }

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain] })
  org = await world.organisation()
  facilitator = facilitatorOf(world.base, org.testKey)
  const wallet = { chain: 'base', supportedTokens: ['USDC'] }
  const { body } = await world.call(org.testKey, 'POST', '/wallet-infra/master-wallets', wallet)
  master = { id: String(body.id), address: body.address as Address }
  await fundNative(chain, master.address, 10n ** 18n)
  await fundToken(chain, 'USDC', master.address, 1_000_000n)
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

interface Verified {
  readonly payer: Permit2Payer
  readonly settle: (change: Partial<PaymentRequirements>) => Promise<Record<string, unknown>>
  /** The payment's row. */
  readonly row: () => Promise<z.output<typeof Logged>>
}

/** A verified payment of at most 0.02 USDC to the master wallet. */
async function verified(scheme: 'exact' | 'upto', funds: Parameters<typeof aPermit2Payer>[1] = {}): Promise<Verified> {
  const payer = await aPermit2Payer(chain, funds)
  const facilitatorAddress = world.server.settlerAddress as Address
  const price = { scheme, amount: '20000', payTo: master.address, facilitatorAddress } as const
  const requirements = requirementsOf(chain, price)
  const paymentPayload: PaymentPayload = await payer.sign(requirements)
  const body = { x402Version: 2, paymentPayload }
  expect((await facilitator.verify({ ...body, paymentRequirements: requirements })).body.isValid).toBe(true)
  const statement = sql`select id, status, tx_hash, failure_reason, raw_amount from payments where payer = ${payer.address}`
  return {
    payer,
    settle: async (change) =>
      (await facilitator.settle({ ...body, paymentRequirements: { ...requirements, ...change } })).body,
    row: () => world.database.db.one(Logged, statement),
  }
}

const balanceOf = ({ payer }: Verified) => tokenBalance(chain, 'USDC', payer.address)
const post = (path: string, body: object) => world.call(org.testKey, 'POST', path, body)

test('a payment is settled only under the scheme of its verification: no other one takes another amount, or waits', async () => {
  const refused = { success: false, errorReason: 'invalid_payment_requirements', transaction: '' }
  const exact = await verified('exact')
  for (const amount of ['0', '1', '20000'])
    expect(await exact.settle({ scheme: 'upto', amount })).toMatchObject(refused)
  expect([(await exact.row()).status, await balanceOf(exact)]).toEqual(['verified', 1_000_000n])
  const metered = await verified('upto')
  expect(await metered.settle({ scheme: 'exact' })).toMatchObject(refused)
  expect(await exact.settle({})).toMatchObject({ success: true })
  expect(await metered.settle({ amount: '1007' })).toMatchObject({ success: true, amount: '1007' })
  expect([await balanceOf(exact), await balanceOf(metered)]).toEqual([980_000n, 998_993n])
})

test('a charge below what its settlement costs is refused and sends nothing; the server may then charge more', async () => {
  const metered = await verified('upto')
  for (const amount of ['1', '999']) {
    const refused = await metered.settle({ amount })
    expect(refused).toMatchObject({ success: false, errorReason: 'invalid_payment_requirements', transaction: '' })
    expect(refused.errorMessage).toContain('smallest charge')
  }
  expect([(await metered.row()).status, await balanceOf(metered)]).toEqual(['verified', 1_000_000n])
  expect(await metered.settle({ amount: '1000' })).toMatchObject({ success: true, amount: '1000' })
})

test('a payer who withdraws between the steps pays what is left, or nothing permanently, and then the session ends', async () => {
  const [covered, short] = [await verified('upto', { balance: 20_000n }), await verified('upto', { balance: 20_000n })]
  for (const { payer } of [covered, short]) await payer.send(usdcOf(chain), transferTo(master.address))
  expect(await covered.settle({ amount: '10000' })).toMatchObject({ success: true, amount: '10000' })
  const { body: session } = await post('/sessions', { paymentId: (await short.row()).id })
  const failed = { success: false, errorReason: 'permit2_insufficient_balance', transaction: '' }
  expect(await short.settle({ amount: '10001' })).toMatchObject(failed)
  expect(await short.settle({ amount: '10000' }), 'a lower charge revives nothing').toMatchObject(failed)
  expect([await balanceOf(covered), await balanceOf(short)]).toEqual([0n, 10_000n])
  const shown = { sessionToken: session.sessionToken, host: 'shop.example', walletId: master.id }
  expect(codeOf(await post('/sessions/verify', shown))).toBe('session-not-found')
})

test('refunds return at most what was charged, not what was permitted, and nothing of a charge of zero', async () => {
  const [metered, free] = [await verified('upto'), await verified('upto')]
  const path = `/payments/${(await metered.row()).id}/refund`
  expect(codeOf(await post(path, {})), 'before it is settled').toBe('payment-not-refundable')
  expect(await metered.settle({ amount: '1858' })).toMatchObject({ success: true })
  for (const amount of ['0.02', '0.001859']) expect(codeOf(await post(path, { amount }))).toBe('refund-exceeds-payment')
  const parts = await Promise.all(Array.from({ length: 6 }, () => post(path, { amount: '0.0006' })))
  expect(countByStatus(parts)).toEqual({ 201: 3, 422: 3 })
  expect((await post(path, {})).body).toMatchObject({ amount: '0.000058' })
  expect(codeOf(await post(path, {}))).toBe('refund-exceeds-payment')
  expect(await free.settle({ amount: '0' })).toMatchObject({ success: true, transaction: '' })
  expect(codeOf(await post(`/payments/${(await free.row()).id}/refund`, {}))).toBe('payment-not-refundable')
})

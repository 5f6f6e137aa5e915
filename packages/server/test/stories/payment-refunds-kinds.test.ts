import { type DevChain, fundNative, fundToken, startChain, tokenBalance } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { createTestClient, http } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aPaymentBody, facilitatorOf, withRequirements } from '../facilitated.ts'
import { aTempoPayer, offerOf, push, type TempoPayer } from '../tempo-payer.ts'
import { type Answer, aPayer, aWorld, codeOf, type Org, type World } from '../world.ts'

// Refunds of payments that did not come by our own middleware and x402.

let base: DevChain
let tempo: DevChain
let world: World
let org: Org
const patient = { timeout: 60_000 }
const masters = '/wallet-infra/master-wallets'
const resource = 'https://api.example.com/weather'

beforeAll(async () => {
  base = await startChain({ network: 'base-sepolia' })
  tempo = await startChain({ network: 'tempo-moderato' })
  world = await aWorld({ chains: [base, tempo] })
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
  await tempo?.stop()
  await base?.stop()
})

const call = (method: string, path: string, body?: unknown): Promise<Answer> =>
  world.call(org.testKey, method, path, body)

async function aMaster(chain: DevChain, on: string, token: string) {
  const { body } = await call('POST', masters, { chain: on, supportedTokens: [token] })
  const master = { id: String(body.id), address: body.address as Address }
  if (on !== 'tempo') await fundNative(chain, master.address, 10n ** 18n)
  await fundToken(chain, token, master.address, 5_000_000n)
  return master
}

/** Refunds once the wallet's deposits are booked. */
async function refunded(paymentId: unknown, body: object): Promise<Answer> {
  let response: Answer | undefined
  await expect
    .poll(async () => {
      response = await call('POST', `/payments/${paymentId}/refund`, body)
      return codeOf(response)
    }, patient)
    .not.toBe('insufficient-balance')
  if (response === undefined) throw new Error('no answer')
  return response
}

const left = async (paymentId: unknown) => (await call('GET', `/payments/${paymentId}`)).body.refundedAmount

test('a Tempo payment that was pushed with more than the price is refunded as it was paid, and no unit more', async () => {
  const master = await aMaster(tempo, 'tempo', 'pathUSD')
  const payer: TempoPayer = await aTempoPayer(tempo)
  const terms = { walletId: master.id, resource, price: '0.01' }
  const offer = offerOf(await call('POST', '/payments/challenge', terms))
  const credential = push(offer, await payer.broadcast(offer, { amount: 15_000n }), payer)
  const verified = await call('POST', '/payments/verify', { ...terms, protocol: 'mpp', credential })
  expect([verified.status, verified.body.amount]).toEqual([200, '0.015'])
  const { paymentId } = verified.body
  const before = await tokenBalance(tempo, 'pathUSD', payer.account.address)
  const part = await refunded(paymentId, { amount: '0.004' })
  expect([part.status, part.body.toAddress]).toEqual([201, payer.account.address])
  const more = await call('POST', `/payments/${paymentId}/refund`, { amount: '0.011001' })
  expect([more.status, codeOf(more), more.body.refundable]).toEqual([422, 'refund-exceeds-payment', '0.011'])
  const all = await Promise.all([1, 2, 3].map(() => call('POST', `/payments/${paymentId}/refund`, {})))
  expect(all.map(({ status }) => status).toSorted()).toEqual([201, 422, 422])
  await expect
    .poll(async () => (await tokenBalance(tempo, 'pathUSD', payer.account.address)) - before, patient)
    .toBe(15_000n)
  expect(await left(paymentId)).toBe('0.015')
})

test('a payment of another x402 server is refunded from the wallet that is named, to its payer, by its own organisation alone', async () => {
  const master = await aMaster(base, 'base', 'USDC')
  const [wallet, payer] = [await world.wallet(org), await aPayer(base)]
  const body = await aPaymentBody(world, org, { payer, wallet })
  const facilitator = facilitatorOf(world.base, org.testKey)
  expect((await facilitator.verify(body)).body.isValid).toBe(true)
  const [log] = (await call('GET', '/payments/logs?limit=1')).list
  const unsettled = await call('POST', `/payments/${log?.paymentId}/refund`, { fromWalletId: master.id })
  expect(codeOf(unsettled)).toBe('payment-not-refundable')
  expect((await facilitator.settle(body)).body.success).toBe(true)
  const foreign = await world.organisation()
  const path = `/payments/${log?.paymentId}/refund`
  expect((await world.call(foreign.testKey, 'POST', path, { fromWalletId: master.id })).status).toBe(404)
  expect(codeOf(await call('POST', path, {}))).toBe('managed-wallet-needed')
  const before = await tokenBalance(base, 'USDC', payer.account.address)
  expect((await refunded(log?.paymentId, { fromWalletId: master.id })).status).toBe(201)
  await expect.poll(() => tokenBalance(base, 'USDC', payer.account.address), patient).toBe(before + 10_000n)
})

test('a payment of a server that settles first is not reported as settled after its refund', async () => {
  const { base: process } = await world.another({ facilitatorWaitMs: 4_000 })
  const master = await aMaster(base, 'base', 'USDC')
  const [wallet, payer] = [await world.wallet(org), await aPayer(base)]
  const body = withRequirements(await aPaymentBody(world, org, { payer, wallet }), {
    extra: { paymentFlow: 'upfront' },
  })
  const node = createTestClient({ mode: 'anvil', transport: http(base.rpcUrl) })
  await node.setAutomine(false)
  const pending = await facilitatorOf(process, org.testKey).settle(body)
  await node.setAutomine(true)
  await node.mine({ blocks: 1 })
  expect(pending.body).toMatchObject({ success: false, errorReason: 'settlement_pending' })
  const [log] = (await call('GET', '/payments/logs?limit=1')).list
  const path = `/payments/${log?.paymentId}`
  await expect.poll(async () => (await call('GET', path)).body.status, patient).toBe('settled')
  expect((await refunded(log?.paymentId, { fromWalletId: master.id, amount: '0.004' })).status).toBe(201)
  for (const headers of [undefined, { 'idempotency-key': 'after-refund' }]) {
    const settled = await facilitatorOf(world.base, org.testKey).settle(body, headers)
    expect(settled.body).toMatchObject({ success: false, errorReason: 'invalid_exact_evm_nonce_already_used' })
  }
})

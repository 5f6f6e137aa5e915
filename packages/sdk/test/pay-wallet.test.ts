import { type DevChain, fundToken, startChain, tokenBalance } from '@purser/devnet'
import { verifyTypedData } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { aWorld, type World } from '../../server/test/world.ts'
import { createPurser, type Purser } from '../src/index.ts'
import { createPayingFetch, type PaymentRecord, paymentOf } from '../src/pay/index.ts'
import { asks, decoded, errorOf, offer, payTo, seller, usdc } from './pay-stage.ts'

let chain: DevChain
let world: World
let purser: Purser
let wallet: { readonly id: string; readonly address: string }

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  // Without a worker deposits count at once.
  world = await aWorld({ chains: [chain], config: { role: 'api' } })
  const { testKey } = await world.organisation()
  purser = createPurser({ apiKey: testKey, baseUrl: world.base })
  const master = await purser.wallets.master.create({ chain: 'base', supportedTokens: ['USDC'] })
  await purser.wallets.master.policy.set(master.id, {
    operations: { pay: { recipients: 'any' } },
    tokens: { USDC: { perDay: '1', approvalAbove: '0.5' } },
  })
  wallet = await purser.wallets.children.create(master.id, {})
  await fundToken(chain, 'USDC', z.templateLiteral(['0x', z.string()]).parse(wallet.address), 10_000_000n)
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const Payment = z.object({
  payload: z.object({
    signature: z.templateLiteral(['0x', z.string()]),
    authorization: z.object({
      from: z.templateLiteral(['0x', z.string()]),
      to: z.templateLiteral(['0x', z.string()]),
      value: z.string().transform(BigInt),
      validAfter: z.string().transform(BigInt),
      validBefore: z.string().transform(BigInt),
      nonce: z.templateLiteral(['0x', z.string()]),
    }),
  }),
})

const types = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const

function paying(fetch: typeof globalThis.fetch, perCall = '0.9', approvedPaymentId?: string) {
  const records: PaymentRecord[] = []
  const pay = createPayingFetch({
    wallet: { id: wallet.id, wallets: purser.wallets, approvedPaymentId },
    limits: { perCall, networks: ['base-sepolia'] },
    fetch,
    onPayment: (record) => void records.push(record),
  })
  return { records, pay }
}

test('a managed wallet signs the payment, and the seller gets the signature of its address', async () => {
  const shop = seller(() => asks(offer(20_000n), offer(10_000n)))
  const { pay, records } = paying(shop)
  const paid = await pay('https://seller.test/report')
  expect(await paid.text()).toBe('goods')
  expect(paymentOf(paid)).toMatchObject({ outcome: 'paid', method: 'x402/v2', amountUsd: '0.01', payTo })
  expect(records).toEqual([paymentOf(paid)])
  const { payload } = Payment.parse(decoded(shop.paid.at(-1)))
  expect(payload.authorization).toMatchObject({ from: wallet.address, to: payTo, value: 10_000n })
  const { name, version } = usdc.eip712 ?? { name: '', version: '' }
  const signed = await verifyTypedData({
    address: payload.authorization.from,
    domain: { name, version, chainId: 84_532, verifyingContract: usdc.address },
    types,
    primaryType: 'TransferWithAuthorization',
    message: payload.authorization,
    signature: payload.signature,
  })
  expect(signed).toBe(true)
  const listed = await purser.transfers.get(records[0]?.reservationId ?? '')
  expect([listed.fromWalletId, listed.amount, listed.status]).toEqual([wallet.id, '0.01', 'pending'])
  expect(await tokenBalance(chain, 'USDC', payTo), 'the seller has not used it').toBe(0n)
})

test('limits, the policy and an approval refuse before anything is sent to the seller', async () => {
  const shop = seller(({ pathname }) => asks(offer(BigInt(pathname.slice(1)))))
  const dear = await errorOf(paying(shop, '0.005').pay('https://seller.test/10000'))
  expect(dear).toMatchObject({ code: 'limit-exceeded', limit: 'perCall' })
  const unsafe = await errorOf(paying(shop).pay('http://seller.test/10000'))
  expect(unsafe).toMatchObject({ code: 'unsupported-payment', refusals: [{ offer: '*', reason: 'insecure' }] })
  const capped = await errorOf(paying(shop, '2').pay('https://seller.test/1500000'))
  expect(capped).toMatchObject({ status: 403, code: 'policy-denied' })
  const waiting = await errorOf(paying(shop).pay('https://seller.test/600000'))
  const { paymentId } = z.object({ paymentId: z.string() }).parse(waiting)
  expect(waiting).toMatchObject({ code: 'approval-needed', payment: { amountUsd: '0.6' } })
  expect((await purser.transfers.get(paymentId)).approval?.status).toBe('waiting')
  const early = await errorOf(paying(shop, '0.9', paymentId).pay('https://seller.test/600000'))
  expect(early).toMatchObject({ status: 409, code: 'approved-payment-not-open' })
  expect(shop.paid).toEqual([])
})

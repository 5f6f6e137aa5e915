import { tokenBalance } from '@purser/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '../../src/platform/db/db.ts'
import { aTransferStage, patient, type TransferStage, transferOf } from '../transfer-stage.ts'
import { aPayer, credentialOf, endOf, pay, redeem } from '../wallet-payment-stage.ts'
import { type Answer, codeOf, countByStatus, type Org } from '../world.ts'

let stage: TransferStage
let seller: Org
let wallet: { id: string; address: `0x${string}` }

beforeAll(async () => {
  stage = await aTransferStage({ network: 'base-sepolia' })
  seller = await stage.world.organisation()
  wallet = await stage.world.wallet(seller)
})
afterAll(() => stage?.stop())

const resource = 'https://neighbor.example/report'

const sell = (path: string, body: Record<string, unknown>) =>
  stage.world.call(seller.testKey, 'POST', `/payments/${path}`, body)

async function challenge(): Promise<unknown> {
  const { body } = await sell('challenge', { walletId: wallet.id, resource, price: '0.01' })
  return { status: 402, headers: { 'Payment-Required': String(body.x402) } }
}

const verify = (paid: Answer) =>
  sell('verify', {
    ...{ protocol: 'x402', credential: credentialOf(paid).value, price: '0.01', currency: 'USD' },
    ...{ walletId: wallet.id, resource, method: 'GET' },
  })

const settle = ({ body: { paymentId, settlementToken } }: Answer) => sell('settle', { paymentId, settlementToken })

test('a managed wallet pays a seller of the same deployment: once, and both see the payment end', async () => {
  const { child } = await aPayer(stage)
  const before = await tokenBalance(stage.dev, 'USDC', wallet.address)
  const paid = await pay(stage, { from: child, challenge: await challenge() })
  expect(paid.status).toBe(201)
  const verified = await Promise.all(Array.from({ length: 10 }, () => verify(paid)))
  expect(countByStatus(verified)).toEqual({ 200: 1, 409: 9 })
  const [receipt] = verified.filter(({ status }) => status === 200)
  if (receipt === undefined) throw new Error('no verification')
  const settled = await settle(receipt)
  expect([settled.status, settled.body.txHash]).toEqual([200, expect.stringMatching(/^0x[0-9a-f]{64}$/)])
  expect((await tokenBalance(stage.dev, 'USDC', wallet.address)) - before).toBe(10_000n)
  expect(await endOf(stage, paid.body.id)).toEqual(['confirmed', null])
  expect(await transferOf(stage, String(paid.body.id))).toMatchObject({ txHash: settled.body.txHash })
  expect(codeOf(await verify(paid))).toBe('duplicate-payment')
})

test('a payment that the payee sends to the chain itself settles the seller’s payment too', async () => {
  const { child } = await aPayer(stage)
  const before = await tokenBalance(stage.dev, 'USDC', wallet.address)
  const paid = await pay(stage, { from: child, challenge: await challenge() })
  const receipt = await verify(paid)
  expect(receipt.status).toBe(200)
  await redeem(stage, paid)
  expect((await settle(receipt)).status).toBe(200)
  expect((await tokenBalance(stage.dev, 'USDC', wallet.address)) - before).toBe(10_000n)
  expect(await endOf(stage, paid.body.id)).toEqual(['confirmed', null])
})

test('the signature of a transfer that the service sends itself buys nothing from a seller of the deployment', async () => {
  const { child } = await aPayer(stage)
  const paid = await pay(stage, { from: child, challenge: await challenge() })
  // As if the service were to send it.
  await stage.world.database.db.run(
    sql`update relays set is_watched = false where subject_id = ${String(paid.body.id)}`,
  )
  expect(codeOf(await verify(paid))).toBe('duplicate-payment')
  await expect.poll(() => tokenBalance(stage.dev, 'USDC', child.address), patient).toBe(10_000_000n)
})

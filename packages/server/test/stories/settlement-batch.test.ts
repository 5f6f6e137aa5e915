import { type DevChain, startChain, tokenBalance } from '@purser/devnet'
import { createTestClient, http } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { spend } from '../spend.ts'
import { type Answer, aPayer, aWorld, type Org, type Payer, type World } from '../world.ts'

let chain: DevChain
let world: World
let org: Org
let wallet: { readonly id: string; readonly address: `0x${string}` }

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain], config: { settleWaitMs: 20_000 } })
  org = await world.organisation()
  wallet = await world.wallet(org)
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const requested = () => ({ walletId: wallet.id, resource: 'https://api.example.com/weather', price: '0.01' })

async function verified(payer: Payer): Promise<Answer> {
  const challenge = await world.call(org.testKey, 'POST', '/payments/challenge', requested())
  const credential = await payer.credential(challenge)
  return world.call(org.testKey, 'POST', '/payments/verify', { protocol: 'x402', credential, ...requested() })
}

function settle({ body: { paymentId, settlementToken } }: Answer): Promise<Answer> {
  return world.call(org.testKey, 'POST', '/payments/settle', { paymentId, settlementToken })
}

/** Code that returns nothing and burns all of its gas: an endless loop. */
const burning = '0x5b600056'

test('a payer who adds code to its account after its payment was verified burns nobody else’s gas', async () => {
  const payers = await Promise.all(Array.from({ length: 20 }, () => aPayer(chain)))
  const payments = await Promise.all(payers.map(verified))
  expect(payments.map(({ status }) => status)).toEqual(payers.map(() => 200))
  const [turned] = payers
  if (turned === undefined) throw new Error('no payer')
  const anvil = createTestClient({ mode: 'anvil', transport: http(chain.rpcUrl) })
  await anvil.setCode({ address: turned.account.address, bytecode: burning })

  const [bad, ...good] = await Promise.all(payments.map(settle))
  expect(good.map(({ status }) => status)).toEqual(good.map(() => 200))
  expect(bad?.status).not.toBe(200)
  expect(await tokenBalance(chain, 'USDC', wallet.address)).toBe(BigInt(good.length) * 10_000n)
  // It was refused before any transaction carried it.
  const [attempts] = await world.database.db.many(
    z.object({ state: z.string(), attempts: z.number() }),
    sql`select state, attempts from relays where signer = ${turned.account.address.toLowerCase()}`,
  )
  expect(attempts).toEqual({ state: 'failed', attempts: 0 })
  const hashes = Map.groupBy(good, ({ body }) => body.txHash)
  expect(hashes.size).toBeLessThan(5)
  // Each payment names those that its transaction settled with it.
  for (const [txHash, together] of hashes) {
    const { batchId, batchPayments } = await paymentOf(payments[good.indexOf(together[0] as Answer) + 1])
    expect([txHash, batchPayments]).toEqual([txHash, together.length])
    const { list } = await world.call(org.testKey, 'GET', `/payments/logs?batchId=${batchId}&limit=100`)
    expect(list.map((log) => log.txHash)).toEqual(together.map(() => txHash))
    const { list: others } = await world.call(org.testKey, 'GET', `/payments/logs?batchId=${batchId}&protocol=mpp`)
    expect(others).toEqual([])
    const stranger = await world.organisation()
    expect((await world.call(stranger.testKey, 'GET', `/payments/logs?batchId=${batchId}`)).list).toEqual([])
  }
})

test('a payer who moves its money away after its payments were verified costs the settler no transaction', async () => {
  const payer = await aPayer(chain, 80_000n)
  const payments = [
    ...(await Promise.all(Array.from({ length: 8 }, () => verified(payer)))),
    await verified(await aPayer(chain)),
  ]
  expect(payments.map(({ status }) => status)).toEqual(payments.map(() => 200))
  await spend(chain, payer.account.address, 75_000n)
  const outcomes = await Promise.all(payments.map(settle))
  expect(outcomes.map(({ status }) => status)).toEqual([...Array.from({ length: 8 }, () => 409), 200])
  const sent = await world.database.db.many(
    z.object({ state: z.string(), attempts: z.number() }),
    sql`select distinct state, attempts from relays where signer = ${payer.account.address.toLowerCase()}`,
  )
  expect(sent).toEqual([{ state: 'failed', attempts: 0 }])
})

test('a settled payment keeps the receipt that settle returned, and has none before', async () => {
  const payment = await verified(await aPayer(chain))
  expect(await paymentOf(payment)).toMatchObject({ receipt: null, batchId: null, batchPayments: 0 })
  const { receipt } = (await settle(payment)).body
  expect(receipt).toMatch(/^ey/)
  expect(await paymentOf(payment)).toMatchObject({ receipt, batchPayments: 1 })
})

async function paymentOf(payment: Answer | undefined): Promise<Answer['body']> {
  return (await world.call(org.testKey, 'GET', `/payments/${payment?.body.paymentId}`)).body
}

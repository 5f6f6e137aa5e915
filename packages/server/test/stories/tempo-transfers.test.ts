import { type DevChain, startChain } from '@purser/devnet'
import { type MppChallenge, networkByName } from '@purser/protocol'
import type { Address, Hex } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { isCustomerPayment } from '../../src/features/payments/customer-payment.ts'
import { aTempoPayer, aTempoWallet, nodeCall, offerOf, push, type TempoPayer } from '../tempo-payer.ts'
import { type Answer, aWorld, codeOf, type Org, type World } from '../world.ts'

// Payers who show a transaction that makes several transfers, or several transactions for one challenge.
let chain: DevChain
let world: World
let payer: TempoPayer

const resource = 'https://api.example.com/weather'

beforeAll(async () => {
  chain = await startChain({ network: 'tempo-moderato' })
  world = await aWorld({ chains: [chain] })
  payer = await aTempoPayer(chain)
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

interface Shop {
  readonly org: Org
  readonly wallet: { readonly id: string; readonly address: Address }
  readonly price: string
}

async function aShop(price: string): Promise<Shop> {
  const org = await world.organisation()
  return { org, wallet: await aTempoWallet(world, org), price }
}

async function challenge({ org, wallet, price }: Shop): Promise<MppChallenge> {
  return offerOf(await world.call(org.testKey, 'POST', '/payments/challenge', { walletId: wallet.id, resource, price }))
}

function verify({ org, wallet, price }: Shop, credential: string): Promise<Answer> {
  const body = { protocol: 'mpp', credential, price, walletId: wallet.id, resource }
  return world.call(org.testKey, 'POST', '/payments/verify', body)
}

async function amountsOf({ org }: Shop): Promise<unknown[]> {
  const { list } = await world.call(org.testKey, 'GET', '/payments/logs')
  return list.map(({ status, amount }) => `${String(status)} ${String(amount)}`)
}

const Logs = z.object({
  logs: z.array(
    z.object({
      address: z.templateLiteral(['0x', z.string()]),
      topics: z.array(z.templateLiteral(['0x', z.string()])),
      data: z.templateLiteral(['0x', z.string()]),
    }),
  ),
})

async function isKnownPayment(transactionHash: Hex): Promise<boolean> {
  const network = networkByName('tempo-moderato')
  if (network === undefined) throw new Error('no such network')
  const { logs } = Logs.parse(await nodeCall(chain, 'eth_getTransactionReceipt', [transactionHash]))
  return isCustomerPayment(world.database.db, network, { transactionHash, logs })
}

test('one transaction that pays the challenges of two sellers is credited to each of them, once', async () => {
  const [one, other] = [await aShop('0.01'), await aShop('0.02')]
  const [first, second] = [await challenge(one), await challenge(other)]
  const hash = await payer.broadcast(first, { also: [second] })
  expect(await isKnownPayment(hash)).toBe(false)
  for (const [shop, offer] of [
    [one, first],
    [other, second],
  ] as const) {
    const [response, again] = [
      await verify(shop, push(offer, hash, payer)),
      await verify(shop, push(offer, hash, payer)),
    ]
    expect([response.status, response.body.amount, codeOf(again)]).toEqual([200, shop.price, 'duplicate-payment'])
    expect(await amountsOf(shop)).toEqual([`settled ${shop.price}`])
  }
  expect(await isKnownPayment(hash)).toBe(true)
  expect(codeOf(await verify(one, push(await challenge(one), hash, payer)))).toBe('duplicate-payment')
})

test('one transaction that pays two challenges of one seller buys both things', async () => {
  const shop = await aShop('0.01')
  const [first, second] = [await challenge(shop), await challenge(shop)]
  const hash = await payer.broadcast(first, { also: [second] })
  const answers = await Promise.all([first, second].map((offer) => verify(shop, push(offer, hash, payer))))
  expect(answers.map(({ status, body }) => [status, body.txHash])).toEqual([
    [200, hash],
    [200, hash],
  ])
  expect(await amountsOf(shop)).toEqual(['settled 0.01', 'settled 0.01'])
})

test('a second transaction for one challenge buys nothing, and its money is credited once', async () => {
  const shop = await aShop('0.01')
  const offer = await challenge(shop)
  const [hash, resent] = [await payer.broadcast(offer), await payer.broadcast(offer, { gas: 700_001n })]
  expect(resent).not.toBe(hash)
  expect((await verify(shop, push(offer, hash, payer))).status).toBe(200)
  for (const shown of [resent, resent, hash])
    expect(codeOf(await verify(shop, push(offer, shown, payer)))).toBe('duplicate-payment')
  expect(await amountsOf(shop)).toEqual(['settled 0.01', 'settled 0.01'])
})

test('two transactions that are shown for one challenge at once are both credited, and one buys', async () => {
  const shop = await aShop('0.01')
  const offer = await challenge(shop)
  const hashes = [await payer.broadcast(offer), await payer.broadcast(offer, { gas: 700_001n })]
  const answers = await Promise.all(hashes.map((hash) => verify(shop, push(offer, hash, payer))))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
  expect(await amountsOf(shop)).toEqual(['settled 0.01', 'settled 0.01'])
})

test('a transaction that pays one challenge twice buys once, and the other transfer is credited once', async () => {
  const shop = await aShop('0.01')
  const offer = await challenge(shop)
  const hash = await payer.broadcast(offer, { calls: 2 })
  expect((await verify(shop, push(offer, hash, payer))).status).toBe(200)
  expect(codeOf(await verify(shop, push(offer, hash, payer)))).toBe('duplicate-payment')
  expect(await amountsOf(shop)).toEqual(['settled 0.01', 'settled 0.01'])
})

import { type DevChain, startChain } from '@purser/devnet'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { followTransactions } from '../../src/features/payments/methods/mpp-tempo/follow.ts'
import { sql } from '../../src/platform/db/db.ts'
import { type LyingNode, startLyingNode } from '../lying-node.ts'
import { runOnce } from '../run-once.ts'
import { aTempoPayer, aTempoWallet, fundSponsor, nodeCall, offerOf, type TempoPayer } from '../tempo-payer.ts'
import { type Answer, aWorld, countByStatus, type Org, type World } from '../world.ts'

/** A process that only answers: the chain is read for an open payment when a test does it. */
let chain: DevChain
let node: LyingNode
let world: World

beforeAll(async () => {
  chain = await startChain({ network: 'tempo-moderato' })
  node = await startLyingNode(chain.rpcUrl)
  const config = { role: 'api', settleWaitMs: 50, sponsorTempoFees: true } as const
  world = await aWorld({ chains: [chain], rpcUrls: { 'tempo-moderato': [node.url] }, config })
  await fundSponsor(chain, world.server.settlerAddress)
})
afterEach(() => node.tellTheTruth())
afterAll(async () => {
  await world?.stop()
  await node?.stop()
  await chain?.stop()
})

async function aShop() {
  const org = await world.organisation('hobby')
  const wallet = await aTempoWallet(world, org)
  const requested = { walletId: wallet.id, resource: 'https://api.example.com/weather', price: '0.01' }
  const pay = async (payer: TempoPayer, nonceKey: bigint, sponsored = false): Promise<Answer> => {
    const offer = offerOf(await world.call(org.testKey, 'POST', '/payments/challenge', requested))
    const credential = await payer.pull(offer, { nonceKey, validSeconds: 600, sponsored })
    return world.call(org.testKey, 'POST', '/payments/verify', { protocol: 'mpp', credential, ...requested })
  }
  return { org, pay }
}

const noFee = { error: { code: -32_000, message: 'insufficient fee token balance' } }

async function usedBy(org: Org) {
  const Row = z.object({ places: z.bigint(), nanoUsd: z.string() })
  return world.database.db.one(
    Row,
    sql`
    select (select coalesce(sum(used), 0)::bigint from usage_counters where organisation_id = ${org.id} and kind = 'payments') as places,
      (select coalesce(sum(nano_usd), 0)::text from gas_budgets where organisation_id = ${org.id}) as nano_usd`,
  )
}

/** Reads the chain for the organisation's payments, and returns their statuses. */
async function follow(org: Org): Promise<unknown[]> {
  await world.database.db.run(
    sql`update payments set check_at = now() - interval '1 second' where status = 'settling' and organisation_id = ${org.id}`,
  )
  await runOnce(world.server.deps, followTransactions)
  return (await world.call(org.testKey, 'GET', '/payments/logs')).list.map(({ status }) => status)
}

test('transactions that the nodes refuse take no place in the month from honest buyers', async () => {
  const { org, pay } = await aShop()
  const [poor, honest] = [await aTempoPayer(chain), await aTempoPayer(chain)]
  node.lie('eth_sendRawTransaction', () => noFee)
  const refused = await Promise.all(Array.from({ length: 100 }, (_, index) => pay(poor, BigInt(index + 1))))
  expect(countByStatus(refused)).toEqual({ 402: 100 })
  expect((await usedBy(org)).places).toBe(0n)
  node.tellTheTruth()
  expect((await pay(honest, 1n)).status).toBe(200)
})

test('a refused transaction that a block includes nevertheless is settled and counted once', async () => {
  const { org, pay } = await aShop()
  node.lie('eth_sendRawTransaction', async ({ truth }) => {
    await truth()
    return noFee
  })
  expect((await pay(await aTempoPayer(chain), 1n)).status).toBe(402)
  expect((await usedBy(org)).places).toBe(0n)
  expect(await follow(org)).toEqual(['settled'])
  expect((await usedBy(org)).places).toBe(1n)
})

test('a refused sponsored transaction gives its gas back at once, and its end gives nothing back again', async () => {
  const { org, pay } = await aShop()
  node.lie('eth_sendRawTransaction', () => noFee)
  expect((await pay(await aTempoPayer(chain), 1n, true)).status).toBe(402)
  expect(await usedBy(org)).toEqual({ places: 0n, nanoUsd: '0' })
  await nodeCall(chain, 'anvil_mine', ['0x8c', '0x5'])
  await expect.poll(() => follow(org), { timeout: 60_000 }).toEqual(['settlement_failed'])
  expect(await usedBy(org)).toEqual({ places: 0n, nanoUsd: '0' })
})

import { type DevChain, fundToken, startChain, tokenBalance } from '@purser/devnet'
import { requireNetwork, tokenBySymbol } from '@purser/protocol'
import type { Address } from 'viem'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { insertReservations, lockOwners } from '../../src/features/funds/index.ts'
import { sql } from '../../src/platform/db/db.ts'
import { type LyingNode, startLyingNode } from '../lying-node.ts'
import { aFamily, childrenOf, type Swept, sweep } from '../sweep-stage.ts'
import { type Answer, aWorld, type Org, request, type World } from '../world.ts'

const of = { chain: 'tempo', token: 'AlphaUSD' } as const
const body = { token: 'AlphaUSD' } as const
const patience = { timeout: 90_000 }

let tempo: DevChain
let node: LyingNode
let world: World
let org: Org

/** Nothing is sent here until another process works. */
beforeAll(async () => {
  tempo = await startChain({ network: 'tempo-moderato' })
  node = await startLyingNode(tempo.rpcUrl)
  world = await aWorld({
    chains: [tempo],
    rpcUrls: { 'tempo-moderato': [node.url] },
    config: { role: 'api', transferWaitMs: 0 },
  })
  await fundToken(tempo, 'pathUSD', world.server.settlerAddress as Address, 50_000_000n)
})
afterAll(async () => {
  await world?.stop()
  await node?.stop()
  await tempo?.stop()
})
beforeEach(async () => {
  node.tellTheTruth()
  org = await world.organisation()
})

function sendFrom(child: Swept['children'][number] | undefined, base = world.base): Promise<Answer> {
  const to = { toAddress: privateKeyToAddress(generatePrivateKey()), toChain: 'tempo', toToken: 'AlphaUSD' }
  const transfer = { fromWalletId: child?.id, fromToken: 'AlphaUSD', amount: '0.5', ...to }
  return request(base, { key: org.testKey, method: 'POST', path: '/wallet-infra/transfer', body: transfer })
}

async function sweptBy(requested: Answer): Promise<unknown[]> {
  expect(requested.status).toBe(202)
  return z
    .array(z.object({ childAddressId: z.string() }))
    .parse(requested.body.children)
    .map((child) => child.childAddressId)
}

test('a child whose transfer is in no block yet is left to the next sweep, which takes the remaining balance', async () => {
  const family = await aFamily(world, org, tempo, { count: 2, of })
  const [paying, resting] = family.children
  const sent = await sendFrom(paying)
  expect([sent.status, sent.body.status]).toEqual([201, 'pending'])
  const first = await sweep(world, org, family, body)
  expect(await sweptBy(first)).toEqual([resting?.id])
  const named = await sweep(world, org, family, { ...body, childAddressIds: [paying?.id] })
  expect(await sweptBy(named), 'nor when it is named').toEqual([])

  const working = await world.another({ role: 'work' })
  const state = async () =>
    (await world.call(org.testKey, 'GET', `/wallet-infra/transfers/${sent.body.id}`)).body.status
  await expect.poll(state, patience).toBe('confirmed')
  const second = await sweep(world, org, family, body)
  expect(await sweptBy(second)).toEqual([paying?.id])
  const ended = async () => (await childrenOf(world, org, family, second.body.id)).status
  await expect.poll(ended, patience).toBe('completed')
  await working.server.stop()
  expect((await childrenOf(world, org, family, second.body.id)).children).toMatchObject([{ status: 'swept' }])
  expect(await tokenBalance(tempo, 'AlphaUSD', paying?.address ?? '0x')).toBe(0n)
}, 180_000)

test('a transfer that is made after a sweep read a child’s balance, and before the sweep is stored, excludes the child from it', async () => {
  const family = await aFamily(world, org, tempo, { count: 2, of })
  const [paying, resting] = family.children
  // Callers of one process share the reads of a block, so the transfer is made at another process.
  const other = await world.another({ role: 'api' })
  let sending: Promise<Answer> | undefined
  node.lie('eth_call', async ({ truth }) => {
    const reply = await truth()
    if (sending === undefined) {
      sending = sendFrom(paying, other.base)
      await sending
    }
    return reply
  })
  const requested = await sweep(world, org, family, body)
  expect((await sending)?.status).toBe(201)
  expect(await sweptBy(requested)).toEqual([resting?.id])
})

test('a sweep waits for a transfer that is reserving money of one of its children, and sees what it takes', async () => {
  const family = await aFamily(world, org, tempo, { count: 2, of })
  const [paying, resting] = family.children
  const { db } = world.server.deps
  const tenant = { organisationId: org.id, environment: 'test' } as const
  const network = requireNetwork('tempo-moderato')
  const coin = tokenBySymbol(network, 'AlphaUSD')
  if (coin === undefined) throw new Error('no such token')
  const asset = { tenant, network, walletId: paying?.id ?? '', owner: paying?.address ?? '0x', coin } as const
  const isWaiting = async () => {
    const statement = sql`select 1 as one from pg_locks where locktype = 'advisory' and not granted
      and database = (select oid from pg_database where datname = current_database())`
    return (await db.many(z.object({}), statement)).length > 0
  }
  let sweeping: Promise<Answer> | undefined
  await db.tx(async (tx) => {
    await lockOwners(tx, [asset])
    sweeping = sweep(world, org, family, body)
    await expect.poll(isWaiting, patience).toBe(true)
    const want = { asset, reason: 'transfer', subjectId: `wtx_${org.id}`, part: 0 } as const
    const cost = { rawAmount: 1n, gasLimit: 0n, dataBytes: 0, transactionId: null, authorizationNonce: null }
    await insertReservations(tx, tenant, [{ ...want, ...cost }])
  })
  const response = await sweeping
  expect(response && (await sweptBy(response))).toEqual([resting?.id])
})

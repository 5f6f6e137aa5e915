import { type DevChain, type FaultProxy, startChain, startFaultProxy } from '@purser/devnet'
import type { MppChallenge } from '@purser/protocol'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { followTransactions } from '../../src/features/payments/methods/mpp-tempo/follow.ts'
import { sql } from '../../src/platform/db/db.ts'
import { plain } from '../../src/platform/db/partitions.ts'
import { failPlatform } from '../../src/platform/errors.ts'
import { runOnce } from '../run-once.ts'
import { aTempoPayer, aTempoWallet, type Changes, offerOf, type TempoPayer } from '../tempo-payer.ts'
import { type Answer, aWorld, codeOf, countByStatus, type Org, request, type World } from '../world.ts'

/** Processes that only answer: the chain is read for an open payment when a test does it. */
let chain: DevChain
let node: FaultProxy
let world: World
let other: string
let org: Org
let payer: TempoPayer
let wallet: { id: string }

const resource = 'https://api.example.com/weather'

beforeAll(async () => {
  chain = await startChain({ network: 'tempo-moderato' })
  node = await startFaultProxy(chain.rpcUrl)
  const config = { role: 'api', rpcTimeoutMs: 1_000, settleWaitMs: 50 } as const
  world = await aWorld({ chains: [chain], rpcUrls: { 'tempo-moderato': [node.url] }, config })
  other = (await world.another()).base
  org = await world.organisation()
  wallet = await aTempoWallet(world, org)
  payer = await aTempoPayer(chain)
})
afterEach(() => node.set('pass'))
afterAll(async () => {
  await world?.stop()
  await node?.stop()
  await chain?.stop()
})

async function challenge(): Promise<MppChallenge> {
  const requested = { walletId: wallet.id, resource, price: '0.01' }
  return offerOf(await world.call(org.testKey, 'POST', '/payments/challenge', requested))
}

function verify(credential: string, base = world.base): Promise<Answer> {
  const body = { protocol: 'mpp', credential, price: '0.01', walletId: wallet.id, resource }
  return request(base, { key: org.testKey, method: 'POST', path: '/payments/verify', body })
}

/** A payment whose outcome is open, because the node does not answer these methods. */
async function anOpenPayment(unanswered: string, changes: Changes): Promise<Answer> {
  node.set('drop', [unanswered])
  const response = await verify(await payer.pull(await challenge(), changes))
  expect([response.status, response.body.settlementPending]).toEqual([200, true])
  return response
}

async function statusOf({ body }: Answer): Promise<unknown> {
  return (await world.call(org.testKey, 'GET', `/payments/${String(body.paymentId)}`)).body.status
}

/** Lets a minute pass for all open payments. */
async function waitMinute(): Promise<void> {
  await world.database.db.run(sql`
    update payments set settling_at = settling_at - interval '1 minute', check_at = now() - interval '1 second' where status = 'settling'`)
}

const follow = () => runOnce(world.server.deps, followTransactions)

const lasting = (nonceKey: bigint): Changes => ({ nonceKey, validSeconds: 600 })

test('a transaction that no block takes is not sent again with each look, and all due ones are sent together', async () => {
  for (const nonceKey of [1n, 2n, 3n]) await anOpenPayment('eth_sendRawTransaction', lasting(nonceKey))
  await waitMinute()
  const before = node.methods.length
  await follow()
  const first = node.methods.slice(before)
  expect(first.filter((method) => method === 'eth_sendRawTransaction')).toHaveLength(3)
  const after = node.methods.length
  await follow()
  expect(node.methods.slice(after)).toEqual([])
})

test('a payment that the witness cannot cover is sent once it can', async () => {
  const { witness } = world.server.deps
  const { cover } = witness
  const before = node.methods.length
  const sentCount = () => node.methods.slice(before).filter((method) => method === 'eth_sendRawTransaction').length
  witness.cover = () => Promise.reject(failPlatform('service-unavailable'))
  try {
    expect((await verify(await payer.pull(await challenge(), lasting(5n)))).status).toBe(503)
    await waitMinute()
    await follow().catch(() => {})
    expect(sentCount()).toBe(0)
  } finally {
    witness.cover = cover
  }
  await waitMinute()
  await follow()
  expect(sentCount()).toBeGreaterThan(0)
})

test('an outcome that cannot be recorded delays the outcome of no other payment', async () => {
  const [poisoned, honest] = [
    await anOpenPayment('eth_getTransactionReceipt', lasting(11n)),
    await anOpenPayment('eth_getTransactionReceipt', lasting(12n)),
  ]
  node.set('pass')
  const refusing =
    "create function refuse_update() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$"
  await world.database.db.run(plain(refusing))
  await world.database.db.run(
    plain(`
    create trigger refuse_update before update of settled_at on payments for each row
      when (old.id = '${String(poisoned.body.paymentId)}') execute function refuse_update()`),
  )
  await waitMinute()
  await follow()
  expect([await statusOf(poisoned), await statusOf(honest)]).toEqual(['settling', 'settled'])
  await world.database.db.run(plain('drop trigger refuse_update on payments'))
  await waitMinute()
  await follow()
  expect(await statusOf(poisoned)).toBe('settled')
})

test('a payment of a process that records no time of its next look is followed too', async () => {
  const { body } = await anOpenPayment('eth_sendRawTransaction', lasting(21n))
  const row = await world.database.db.one(
    z.object({ isScheduled: z.boolean() }),
    sql`select check_at > now() as is_scheduled from payments where id = ${String(body.paymentId)}`,
  )
  expect(row.isScheduled).toBe(true)
})

test('of the transactions with one nonce one is taken at a time, wherever they are verified', async () => {
  node.set('drop', ['eth_sendRawTransaction'])
  const credentials = await Promise.all([1, 2, 3, 4, 5, 6].map(async () => payer.pull(await challenge(), lasting(31n))))
  const answers = await Promise.all(
    credentials.map((credential, index) => verify(credential, index % 2 === 0 ? world.base : other)),
  )
  expect(countByStatus(answers)).toEqual({ 200: 1, 409: 5 })
  const refused = answers.filter(({ status }) => status === 409)
  expect(new Set(refused.map(codeOf))).toEqual(new Set(['duplicate-payment']))

  node.set('pass')
  await waitMinute()
  await follow()
  expect((await verify(credentials[5] ?? '')).body.message).toBe(
    'the nonce is used, so that no block can take the transaction',
  )
  expect((await verify(await payer.pull(await challenge(), { ...lasting(31n), nonce: 1 }))).status).toBe(200)
})

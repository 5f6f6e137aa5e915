import { type DevChain, startChain, tokenBalance } from '@purser/devnet'
import type { Address } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import {
  type Answer,
  aPayer,
  aWorld,
  codeOf,
  countByStatus,
  type Org,
  type Payer,
  request,
  type World,
} from '../world.ts'

let chain: DevChain
let world: World
/** Two processes that answer requests and never use the chain's lane, beside one that only works. */
let bases: readonly [string, string]
let org: Org
let payer: Payer
let wallet: { id: string; address: Address }

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain], config: { role: 'api', settleWaitMs: 30_000 } })
  bases = [world.base, (await world.another()).base]
  org = await world.organisation()
  wallet = await world.wallet(org)
  payer = await aPayer(chain)
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const resource = 'https://api.example.com/weather'

function post(
  process: 0 | 1,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
  key = org.testKey,
): Promise<Answer> {
  return request(bases[process], { key, method: 'POST', path, body, headers })
}

async function credential(): Promise<string> {
  return payer.credential(await post(0, '/payments/challenge', { walletId: wallet.id, resource, price: '0.01' }))
}

function verify(process: 0 | 1, signed: string, headers: Record<string, string> = {}): Promise<Answer> {
  return post(
    process,
    '/payments/verify',
    { protocol: 'x402', credential: signed, price: '0.01', walletId: wallet.id, resource },
    headers,
  )
}

function settle(
  process: 0 | 1,
  { body: { paymentId, settlementToken } }: Answer,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return post(process, '/payments/settle', { paymentId, settlementToken }, headers)
}

const sides = Array.from({ length: 40 }, (_, index): 0 | 1 => (index % 2 === 0 ? 0 : 1))

async function countOf(table: 'payments' | 'events'): Promise<bigint> {
  const statement =
    table === 'payments' ? sql`select count(*) as count from payments` : sql`select count(*) as count from events`
  return (await world.database.db.one(z.object({ count: z.bigint() }), statement)).count
}

function withoutId({ requestId: _, ...body }: Answer['body']): Answer['body'] {
  return body
}

test('one credential sent to two processes at once buys one thing', async () => {
  const before = [await countOf('payments'), await countOf('events')] as const
  const signed = await credential()
  const answers = await Promise.all(sides.map((side) => verify(side, signed)))
  expect(countByStatus(answers)).toEqual({ 200: 1, 409: 39 })
  expect([await countOf('payments'), await countOf('events')]).toEqual([before[0] + 1n, before[1] + 1n])
})

test('a plan’s limit applies to both processes together', async () => {
  const hobby = await world.organisation('hobby')
  const { id } = await world.wallet(hobby)
  const body = { protocol: 'x402', credential: 'stub_payment_accepted', price: '0.01', walletId: id }
  const answers = await Promise.all(
    [...sides, ...sides, ...sides].map((side) => post(side, '/payments/verify', body, {}, hobby.testKey)),
  )
  expect(countByStatus(answers)).toEqual({ 200: 100, 429: 20 })
})

test('a key revoked at one process is refused at the other from then on', async () => {
  const made = await post(0, '/organisations/current/api-keys', { name: 'short-lived', environment: 'test' })
  const key = String(made.body.key)
  const read = (process: 0 | 1) => request(bases[process], { key, method: 'GET', path: '/organisations/current' })
  expect(countByStatus(await Promise.all(sides.map(read)))).toEqual({ 200: 40 })
  const gone = await request(bases[0], {
    key: org.testKey,
    method: 'DELETE',
    path: `/organisations/current/api-keys/${String(made.body.id)}`,
  })
  expect(gone.status).toBe(204)
  expect(countByStatus(await Promise.all(sides.map(read)))).toEqual({ 401: 40 })
})

test('an Idempotency-Key applies to both processes: one effect, one answer, and another body is refused', async () => {
  const name = { name: 'once', environment: 'test' }
  const key = { 'idempotency-key': 'over-two-1' }
  const answers = await Promise.all(sides.map((side) => post(side, '/organisations/current/api-keys', name, key)))
  expect(answers.filter(({ status }) => status !== 201 && status !== 409)).toEqual([])
  expect(new Set(answers.filter(({ status }) => status === 409).map(codeOf))).toEqual(
    new Set(answers.some(({ status }) => status === 409) ? ['idempotency-in-progress'] : []),
  )
  const [one, other] = [
    await post(0, '/organisations/current/api-keys', name, key),
    await post(1, '/organisations/current/api-keys', name, key),
  ]
  expect([one.status, one.headers.get('idempotency-replayed'), one.body]).toEqual([201, 'true', other.body])
  for (const answer of answers.filter(({ status }) => status === 201)) expect(answer.body).toEqual(one.body)
  const listed = await request(bases[1], { key: org.testKey, method: 'GET', path: '/organisations/current/api-keys' })
  expect(listed.list.filter((record) => record.name === 'once')).toHaveLength(1)
  expect(codeOf(await post(1, '/organisations/current/api-keys', { ...name, name: 'twice' }, key))).toBe(
    'idempotency-key-reused',
  )
})

test('a payment verified under an Idempotency-Key at one process is the same payment at the other', async () => {
  const signed = await credential()
  const key = { 'idempotency-key': 'over-two-2' }
  const answers = await Promise.all(sides.map((side) => verify(side, signed, key)))
  const codes = new Set(answers.map((answer) => `${answer.status} ${codeOf(answer)}`.trim()))
  expect([...codes].filter((code) => !['200', '409 idempotency-in-progress'].includes(code))).toEqual([])
  const [one, other] = [await verify(0, signed, key), await verify(1, signed, key)]
  expect([one.status, one.body]).toEqual([200, other.body])
  expect(new Set(answers.filter(({ status }) => status === 200).map(({ body }) => body.paymentId))).toEqual(
    new Set([one.body.paymentId]),
  )
})

test('settlements requested from processes that only answer are done by one that only works, once, whichever got the request', async () => {
  const verified = await Promise.all(sides.map(async (side) => verify(side, await credential())))
  expect(countByStatus(verified)).toEqual({ 200: 40 })
  const before = await tokenBalance(chain, 'USDC', wallet.address)
  const requested = await Promise.all(
    verified.map((answer, index) =>
      post(
        index % 2 === 0 ? 1 : 0,
        '/payments/settle',
        { paymentId: answer.body.paymentId, settlementToken: answer.body.settlementToken },
        { prefer: 'respond-async' },
      ),
    ),
  )
  expect(requested.map(({ status, body }) => [status, body])).toEqual(
    Array(40).fill([202, { status: 'settling', txHash: null }]),
  )

  await Promise.all([world.another({ role: 'work' }), world.another({ role: 'work' })])
  const settled = await Promise.all(verified.flatMap((answer) => [settle(0, answer), settle(1, answer)]))
  expect(countByStatus(settled)).toEqual({ 200: 80 })
  for (let index = 0; index < settled.length; index += 2) expect(settled[index]?.body).toEqual(settled[index + 1]?.body)
  expect((await tokenBalance(chain, 'USDC', wallet.address)) - before).toBe(400_000n)
})

test('a settlement under an Idempotency-Key gets the same answer from both processes', async () => {
  const verified = await verify(0, await credential())
  const key = { 'idempotency-key': 'over-two-3' }
  const [one, other] = await Promise.all([settle(0, verified, key), settle(1, verified, key)])
  expect([200, 202, 409]).toContain(one.status)
  expect([200, 202, 409]).toContain(other.status)
  await expect.poll(async () => (await settle(0, verified, key)).status, { timeout: 60_000 }).toBe(200)
  const [first, second] = await Promise.all([settle(0, verified, key), settle(1, verified, key)])
  expect(withoutId(first.body)).toEqual(withoutId(second.body))
})

import type { Address, Hex } from '@purser/protocol'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { relays } from '../src/features/relayer/index.ts'
import { sql } from '../src/platform/db/db.ts'
import { newId } from '../src/platform/ids.ts'
import { createLog } from '../src/platform/log.ts'
import { freshDatabase } from './database.ts'
import type { SimChain } from './sim/chain.ts'
import { chanceOf } from './sim/chance.ts'
import { Gate } from './sim/gate.ts'
import { liarAbout } from './sim/lies.ts'
import { SimNode } from './sim/nodes.ts'
import { SimProcess } from './sim/process.ts'
import { aChain, aStage, type Stage } from './sim/stage.ts'
import { authorizationText } from './sim/token.ts'
import { signatureOf } from './sim/words.ts'

let stage: Stage

beforeAll(async () => {
  stage = await aStage(await freshDatabase())
})
afterAll(() => stage?.stop())

const startMs = Date.UTC(2026, 10, 3, 12)
const value = 10_000n
const payTo: Address = `0x${'d'.repeat(40)}`

let nowMs: number
let chain: SimChain
let node: SimNode
let gate: Gate
let process: SimProcess
let start: () => SimProcess

beforeEach(async () => {
  const { db, deps, network, signer } = stage
  nowMs = startMs
  await stage.clear()
  await stage.setNow(nowMs)
  const chance = { ...chanceOf(1), happens: (share: number) => share > 0 }
  chain = aChain(stage, chance, BigInt(nowMs / 1_000))
  const liar = liarAbout(chain, chance, () => [])
  node = new SimNode(0, { chain, chainId: network.chainId, chance, liar })
  gate = new Gate(chance, stage.countLocked, () => undefined)
  const log = createLog({ level: 'silent' })
  const ground = { db, deps, network, signer, nodes: [node], gate, chance, log, nowMs: () => nowMs }
  start = () => new SimProcess(ground, 'process', 0)
  process = start()
})

/**
 * Stores relays that cannot share a transaction, of contract accounts unless `isPlain`: this many for each of these
 * payers.
 */
async function put(
  organisation: number | string,
  payers: readonly Address[],
  { each = 1, purpose = 'payments', isPlain = false, seconds = 3_600, firstNonce = 0 } = {},
) {
  const organisationId = typeof organisation === 'string' ? organisation : stage.tenants[organisation]?.organisationId
  const payloads = payers.flatMap((from) =>
    Array.from({ length: each }, (_, index) => {
      const nonce: Hex = `0x${from.slice(2)}${(firstNonce + index).toString(16).padStart(24, '0')}`
      const authorization = { from, to: payTo, value, validBefore: BigInt(nowMs / 1_000 + seconds), nonce }
      chain.head.state.balances.set(from, value * 1_000n)
      const signed = signatureOf(authorizationText(authorization))
      const signature = isPlain ? { kind: 'ecdsa', v: 27, r: signed, s: signed } : { kind: 'bytes', signature: signed }
      const stored = { kind: 'eip3009', from, to: payTo, value: value.toString(), validAfter: '0', nonce, signature }
      return JSON.stringify({
        ...stored,
        validBefore: authorization.validBefore.toString(),
        deployment: null,
        token: chain.rules.token,
      })
    }),
  )
  await relays.enqueue(
    stage.db,
    purpose,
    sql`
    select subject_id, ${stage.network.name}::text as network, ${organisationId ?? ''}::text as organisation_id,
      'test'::text as environment, payload, now() + ${seconds}::integer * interval '1 second' as valid_before, now() as created_at
    from unnest(${payloads.map(() => newId('pay', stage.deps))}::text[], ${payloads}::jsonb[]) as given (subject_id, payload)`,
  )
}

const payer = (name: string, index = 0): Address => `0x${name.repeat(8)}${index.toString(16).padStart(32, '0')}`
const many = (name: string, count: number) => Array.from({ length: count }, (_, index) => payer(name, index))

/** One pass of the relayer, then blocks until its transactions are final. */
async function pass(): Promise<void> {
  const turnLanes = () => process.turnLanes()
  for (const work of [mine, () => process.passRelays(), turnLanes, mine, turnLanes])
    await gate.drain([work().catch(() => undefined)])
}

async function mine(): Promise<void> {
  nowMs += 12_000
  await stage.setNow(nowMs)
  for (let block = 0; block < stage.network.confirmationDepth + 1; block += 1) chain.mine(BigInt(nowMs / 1_000))
  node.sync()
}

/** The distinct states of a payer's relays. */
async function statesOf(signer: Address): Promise<string[]> {
  const rows = await stage.db.many(
    z.object({ state: z.string() }),
    sql`select distinct state from relays where signer = ${signer} order by state`,
  )
  return rows.map(({ state }) => state)
}

/** The number of passes until a payer's relay is on chain. */
async function turnsOf(signer: Address, most: number): Promise<number> {
  for (let turn = 1; turn <= most; turn += 1) {
    await pass()
    if ((await statesOf(signer)).every((state) => state === 'settled')) return turn
  }
  return Number.POSITIVE_INFINITY
}

test('with two hundred signatures of one organisation’s contracts, another’s is sent in the second pass', async () => {
  await put(0, many('a', 20), { each: 10 })
  await put(1, [payer('b')])
  expect(await turnsOf(payer('b'), 4)).toBeLessThanOrEqual(2)
}, 60_000)

test('with two hundred signatures of one payer, another payer of the organisation is sent in the second pass', async () => {
  await put(0, [payer('a')], { each: 200 })
  await put(0, [payer('b')])
  expect(await turnsOf(payer('b'), 4)).toBeLessThanOrEqual(2)
}, 60_000)

test('two organisations with waiting signatures get equally many slots', async () => {
  await put(0, many('a', 10), { each: 10 })
  await put(1, many('b', 10), { each: 10 })
  for (let turn = 0; turn < 8; turn += 1) await pass()
  const sent = await stage.db.many(
    z.object({ sent: z.bigint() }),
    sql`select count(*) filter (where state = 'settled') as sent from relays group by organisation_id order by 1`,
  )
  expect(sent.map((row) => row.sent)).toEqual([8n, 8n])
}, 60_000)

test('a payer has one transaction that is sent alone in flight, and others have theirs beside it', async () => {
  await put(0, [payer('a')], { each: 3 })
  await put(1, many('b', 4))
  for (let turn = 0; turn < 4; turn += 1) await gate.drain([process.passRelays()])
  const inFlight = await stage.db.many(
    z.object({ signer: z.string(), count: z.bigint() }),
    sql`select signer, count(*) as count from relays where state = 'included' group by signer order by signer`,
  )
  expect(inFlight.map(({ count }) => count)).toEqual([1n, 1n, 1n])
  expect(inFlight[0]?.signer).toBe(payer('a'))
}, 60_000)

/** Ten organisations of one account on the free plan, each with a payer whose relays wait. */
async function putOfOneAccount(given: { readonly each: number; readonly isPlain?: boolean }): Promise<void> {
  await stage.db.run(sql`
    insert into accounts (id, email, created_at) values ('acc_many', 'many@example.com', now()) on conflict do nothing`)
  for (let index = 0; index < 10; index += 1) {
    const organisationId = `org_${`many${index}`.padStart(26, '0')}`
    await stage.db.run(sql`
      insert into organisations (id, name, type, plan, quota_account_id, created_at)
      values (${organisationId}, 'Many', 'team', 'hobby', 'acc_many', now()) on conflict do nothing`)
    await put(organisationId, [payer('a', index)], given)
  }
}

test('ten organisations of one account delay a payment that is sent alone by one turn, and alternate', async () => {
  await putOfOneAccount({ each: 3 })
  await put(1, [payer('b')])
  await pass()
  await put(1, [payer('c')])
  await pass()
  for (const one of ['b', 'c']) expect(await statesOf(payer(one)), one).toEqual(['settled'])
  for (let turn = 0; turn < 10; turn += 1) await pass()
  for (const one of many('a', 10)) expect(await statesOf(one)).toContain('settled')
}, 60_000)

/** Organisations of the paid plan, each with relays of these payers that wait in this order. */
async function putAtMany(count: number, payers: readonly string[], { first = 0, each = 1 } = {}): Promise<void> {
  for (let index = first; index < first + count; index += 1) {
    const organisationId = `org_${`payer${String(index).padStart(2, '0')}`.padStart(26, '0')}`
    await stage.db.run(sql`
      insert into organisations (id, name, type, plan, created_at) values (${organisationId}, 'Paid', 'team', 'pro', now()) on conflict do nothing`)
    for (const one of payers) await put(organisationId, [payer(one)], { each, firstNonce: index * each })
  }
}

/** One pass of the relayer, a second after the last one. */
async function send(): Promise<void> {
  nowMs += 1_000
  await stage.setNow(nowMs)
  await gate.drain([process.passRelays()])
}

test('a payer whose payments wait at ten organisations takes one slot, and delays no other payer', async () => {
  await putAtMany(10, ['a'])
  await put(1, [payer('b')])
  await pass()
  expect(await statesOf(payer('b'))).toEqual(['settled'])
  await send()
  await put(1, [payer('c')])
  await send()
  expect(await statesOf(payer('c')), 'while a payment of the first is in flight').toEqual(['included'])
}, 60_000)

test('a payer who is first at ten organisations delays no payer who waits behind at the same ones', async () => {
  await putAtMany(10, ['a'])
  // Not at the first one, which is served before them.
  await putAtMany(2, ['b', 'c'], { first: 5 })
  for (let count = 0; count < 3; count += 1) await send()
  for (const one of ['a', 'b', 'c']) expect(await statesOf(payer(one)), one).toContain('included')
}, 60_000)

test('a payer who is first at more organisations than a turn reads delays the payers of others by one turn', async () => {
  await putAtMany(30, ['a'])
  await put(1, [payer('b')])
  for (let count = 0; count < 3; count += 1) await send()
  for (const one of ['a', 'b']) expect(await statesOf(payer(one)), one).toContain('included')
}, 60_000)

test('while a payer’s relay is in flight, the other organisations at which it waits keep their order', async () => {
  await putAtMany(4, ['a'], { each: 3 })
  for (let turn = 0; turn < 4; turn += 1) {
    await send()
    await send()
    await pass()
  }
  const settled = await stage.db.many(
    z.object({ count: z.bigint() }),
    sql`select count(*) filter (where state = 'settled') as count from relays group by organisation_id order by 1`,
  )
  expect(settled.at(-1)?.count ?? 0n, 'no organisation is two payments ahead').toBeLessThanOrEqual(
    (settled[0]?.count ?? 0n) + 1n,
  )
}, 60_000)

test('ten organisations of one account have one share of a batch', async () => {
  await putOfOneAccount({ each: 20, isPlain: true })
  await put(1, many('b', 10), { each: 8, isPlain: true })
  await gate.drain([process.passRelays()])
  const sent = await stage.db.many(
    z.object({ count: z.bigint() }),
    sql`select count(*) filter (where state = 'included') as count from relays group by organisation_id like '%many_'`,
  )
  expect(sent.map(({ count }) => count)).toEqual([50n, 50n])
}, 60_000)

test('a contract for which the node fails every time is delayed separately', async () => {
  const truth = node.answer.bind(node)
  let failures = 0
  node.answer = (method, params) => {
    if (method !== 'eth_call' || !JSON.stringify(params).includes('aaaaaaaa')) return truth(method, params)
    failures += 1
    throw new Error('too busy')
  }
  await put(0, many('a', 8), { each: 25 })
  await put(1, [payer('b')])
  expect(await turnsOf(payer('b'), 4)).toBeLessThanOrEqual(2)
  expect(failures).toBeGreaterThan(0)
  expect(await statesOf(payer('a'))).toEqual(['waiting'])
}, 60_000)

test('a signature whose sending fails in the database is delayed separately', async () => {
  // Without sweep rows, so looking them up fails.
  await put(0, many('a', 8), { each: 25, purpose: 'wallets.sweeps' })
  await put(1, [payer('b')])
  expect(await turnsOf(payer('b'), 4)).toBeLessThanOrEqual(2)
  const { put: postponed } = await stage.db.one(
    z.object({ put: z.bigint() }),
    sql`select count(*) as put from relays where checks > 0 and state = 'waiting'`,
  )
  expect(postponed).toBeGreaterThan(0n)
}, 60_000)

test('signatures that share a transaction and whose sending fails in the database are delayed separately', async () => {
  await put(0, many('a', 8), { each: 5, purpose: 'wallets.sweeps', isPlain: true })
  await put(1, [payer('b')], { isPlain: true })
  expect(await turnsOf(payer('b'), 4)).toBeLessThanOrEqual(2)
  expect(await statesOf(payer('a'))).toEqual(['waiting'])
}, 60_000)

test.each([{ isPlain: true }, { isPlain: false }])(
  'a signature that expires between the plan of its transaction and the process that signs it moves nothing and stops nobody: in a batch $isPlain',
  async ({ isPlain }) => {
    await put(0, [payer('a')], { isPlain, seconds: 60 })
    await gate.drain([process.passRelays()])
    expect(await statesOf(payer('a'))).toEqual(['included'])
    const planned = z.object({ planned: z.bigint() })
    const unsigned = sql`select count(*) as planned from chain_transactions where status = 'planned'`
    expect((await stage.db.one(planned, unsigned)).planned, 'planned and not signed').toBe(1n)
    process.life.isDead = true
    nowMs += 300_000
    await mine()
    process = start()
    await put(1, many('b', 3), { isPlain })

    // Lone relays go one by one, and the abandoned plan has the first slot.
    expect(await turnsOf(payer('b', 2), 6)).toBeLessThanOrEqual(isPlain ? 1 : 4)
    await pass()
    expect(await statesOf(payer('a'))).toEqual(['expired'])
    expect(chain.head.state.balances.get(payTo)).toBe(3n * value)
    const used = [...chain.head.counts.values()]
    expect(used, 'the abandoned plan has used its nonce').toEqual([isPlain ? 2n : 4n])
  },
  60_000,
)

test('a signature has expired once a block at the confirmation depth says so, whatever clocks and newer blocks say', async () => {
  await mine()
  await put(0, [payer('a')], { seconds: 60 })
  nowMs += 300_000
  await stage.setNow(nowMs)
  chain.mine(BigInt(nowMs / 1_000))
  node.sync()
  await gate.drain([process.passRelays()])
  expect(await statesOf(payer('a'))).toEqual(['waiting'])
  await mine()
  await gate.drain([process.passRelays()])
  expect(await statesOf(payer('a'))).toEqual(['expired'])
}, 60_000)

import { setTimeout as delay } from 'node:timers/promises'
import { type DevChain, startChain } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import {
  aLane,
  attemptsOf,
  effectsOf,
  freeLeases,
  laneMsMax,
  passLane,
  planPayment,
  planWith,
  purpose,
  runLane,
  type Stage,
  statusOf,
  takeAllLeases,
  weiOf,
} from '../../../test/lane-stage.ts'
import { type Db, openDb, type Sql, sql } from '../../platform/db/db.ts'
import { createLog } from '../../platform/log.ts'
import { systemRandom } from '../../platform/random.ts'
import type { Lanes } from '../port.ts'
import { createLanes } from './lanes.ts'
import { resumeLanes } from './resume.ts'
import type { LaneParts } from './send.ts'
import { sendLanes } from './send.ts'
import { listOpenNetworks, listOpenSenders } from './store.ts'

let database: TestDatabase
let dev: DevChain
const cleanups: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  database = await freshDatabase({ connectionsMax: 20 })
  dev = await startChain({ network: 'base-sepolia' })
})
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})
afterAll(async () => {
  await dev?.stop()
  await database?.drop()
})

async function aStage(): Promise<Stage> {
  const stage = await aLane({ db: database.db, dev })
  cleanups.push(() => stage.outbound.close())
  cleanups.push(() => stage.lanes.stop())
  return stage
}

/** Records what a process sends to the chain, in order. */
function watched(parts: LaneParts): { readonly parts: LaneParts; readonly raws: string[] } {
  const raws: string[] = []
  const send: LaneParts['chain']['send'] = (some) => {
    raws.push(...some)
    return parts.chain.send(some)
  }
  return { parts: { ...parts, chain: { ...parts.chain, send } }, raws }
}

const lastBroadcast = (id: string) =>
  database.db.one(
    z.object({ at: z.date().nullable() }),
    sql`select last_broadcast_at as at from chain_transactions where id = ${id}`,
  )

test('a worker that slept past its leases, and whose work another took over, signs, stores, marks and ends nothing when it wakes', async () => {
  const stage = await aStage()
  const sleeper = watched(stage.parts)
  const [sent, planned] = [await planPayment(stage), await planPayment(stage)]
  await passLane(stage.parts, stage.lane)
  await runLane(stage)
  const late = await planPayment(stage)
  // Its lease ends and another worker takes it, but has done nothing yet.
  const leased = await takeAllLeases(database.db, stage.network.name)
  await expect(passLane(sleeper.parts, stage.lane)).rejects.toThrow('lease')
  expect([await statusOf(database.db, late.id), await attemptsOf(database.db, late.id)]).toEqual(['planned', []])
  expect(sleeper.raws, 'nothing was signed and sent').toEqual([])
  expect(await effectsOf(database.db, late.id)).toEqual([])
  await runLane({ ...stage, parts: { ...stage.parts, leased } })
  for (const { id, to } of [sent, planned, late]) {
    expect(await effectsOf(database.db, id)).toEqual(['sent', 'mined', 'final'])
    expect(await weiOf(stage, to)).toBe(1n)
  }
})

test('a worker that wakes after another worker’s bytes were mined cannot close them, and sends at most what is stored', async () => {
  const stage = await aStage()
  const payment = await planPayment(stage)
  const mute: LaneParts = {
    ...stage.parts,
    chain: { ...stage.parts.chain, watch: () => Promise.reject(new Error('the worker stops here')) },
  }
  await passLane(mute, stage.lane).catch(() => undefined)
  expect(await statusOf(database.db, payment.id)).toBe('sent')
  const sleeper = watched(stage.parts)
  const leased = await takeAllLeases(database.db, stage.network.name)
  const before = await lastBroadcast(payment.id)
  await resumeLanes(sleeper.parts, [stage.lane.sender])
  await passLane(sleeper.parts, stage.lane)
  expect(await statusOf(database.db, payment.id), 'not closed by it').toBe('sent')
  expect(await effectsOf(database.db, payment.id)).toEqual(['sent'])
  expect(await lastBroadcast(payment.id), 'not marked by it').toEqual(before)
  const stored = await database.db.many(
    z.object({ raw: z.instanceof(Uint8Array) }),
    sql`select raw from transaction_attempts where transaction_id = ${payment.id}`,
  )
  const known = stored.map(({ raw }) => `0x${Buffer.from(raw).toString('hex')}`)
  expect(sleeper.raws.filter((raw) => !known.includes(raw))).toEqual([])
  await runLane({ ...stage, parts: { ...stage.parts, leased } })
  expect(await effectsOf(database.db, payment.id)).toEqual(['sent', 'mined', 'final'])
  expect(await weiOf(stage, payment.to)).toBe(1n)
})

test('a worker that sleeps between signing and storing stores and sends nothing, and the next worker signs its nonce', async () => {
  const stage = await aStage()
  const payment = await planPayment(stage)
  const signer = stage.parts.signerOf(stage.lane.sender)
  const sleeper = watched({
    ...stage.parts,
    signerOf: () => ({
      ...signer,
      async signTransaction(fields) {
        const signed = await signer.signTransaction(fields)
        stage.parts = { ...stage.parts, leased: await takeAllLeases(database.db, stage.network.name) }
        return signed
      },
    }),
  })
  await expect(passLane(sleeper.parts, stage.lane)).rejects.toThrow('lease')
  expect([await attemptsOf(database.db, payment.id), sleeper.raws]).toEqual([[], []])
  await runLane(stage)
  expect(await weiOf(stage, payment.to)).toBe(1n)
  expect(await attemptsOf(database.db, payment.id)).toHaveLength(1)
})

test('a worker that lost its lease with more stored transactions than one batch stops after the first batch', async () => {
  const stage = await aStage()
  const sent: string[] = []
  const parts: LaneParts = {
    ...stage.parts,
    chain: {
      ...stage.parts.chain,
      send: async (raws) => {
        sent.push(...raws)
        return raws.map(() => ({ outcome: 'sent' }))
      },
    },
  }
  for (let count = 0; count < 130; count++) await planPayment(stage)
  await sendLanes(parts, [stage.lane.sender])
  await resumeLanes(parts, [stage.lane.sender])
  expect([sent.length, new Set(sent).size]).toEqual([130, 130])
  await takeAllLeases(database.db, stage.network.name)
  await expect(sendLanes(parts, [stage.lane.sender])).rejects.toThrow('lease')
  expect(sent.length - 130, 'one batch of stored bytes').toBe(64)
  // No chain has them, and later tests count open transactions.
  await database.db.run(sql`update chain_transactions set status = 'final' where sender = ${stage.lane.sender}`)
})

/** A separate process with its own connections, whose clock is off by `offMs`. */
function aWorker(stage: Stage, offMs: number, leaseMs: number): { readonly lanes: Lanes; readonly db: Db } {
  const db = openDb({ url: database.url, connectionsMax: 6, log: createLog({ level: 'silent' }) })
  const clock = { now: () => new Date(Date.now() + offMs) }
  const signerOf = async () => stage.signer
  const lanes = createLanes({ deps: { ...stage.deps, db, clock }, chains: stage.chains, signerOf, leaseMs })
  cleanups.push(() => db.close())
  cleanups.push(() => lanes.stop())
  return { lanes, db }
}

const areFinal = async (ids: readonly { readonly id: `ctx_${string}` }[]) => {
  const statuses = await Promise.all(ids.map(({ id }) => statusOf(database.db, id)))
  return statuses.every((status) => status === 'final')
}

test('two workers whose clocks are 90 seconds apart send everything once, also when the active one stops', async () => {
  const stage = await aStage()
  const [early, late] = [aWorker(stage, -45_000, 1_000), aWorker(stage, 45_000, 1_000)]
  await freeLeases(database.db)
  early.lanes.start([stage.handler])
  late.lanes.start([stage.handler])
  const payments = await Promise.all(Array.from({ length: 8 }, () => planPayment(stage)))
  await expect.poll(() => areFinal(payments), { timeout: laneMsMax }).toBe(true)
  await early.lanes.stop()
  payments.push(...(await Promise.all(Array.from({ length: 8 }, () => planPayment(stage)))))
  await expect.poll(() => areFinal(payments), { timeout: laneMsMax }).toBe(true)
  for (const { id, to } of payments) {
    expect(await weiOf(stage, to)).toBe(1n)
    expect((await effectsOf(database.db, id)).filter((step) => step === 'final')).toHaveLength(1)
  }
})

test('a worker whose host is gone while its connections stay open is replaced when its lease ends, and what it signed arrives once', async () => {
  const stage = await aStage()
  const leaseMs = 2_000
  const payment = await planPayment(stage)
  const leased = await takeAllLeases(database.db, stage.network.name, leaseMs)
  const mute = { ...stage.parts.chain, send: () => Promise.reject(new Error('the host is gone')) }
  await passLane({ ...stage.parts, leased, chain: mute }, stage.lane).catch(() => undefined)
  expect(await statusOf(database.db, payment.id), 'signed but not sent to any node').toBe('sent')
  const { lanes } = aWorker(stage, 0, leaseMs)
  lanes.start([stage.handler])
  await expect.poll(() => areFinal([payment]), { timeout: laneMsMax }).toBe(true)
  expect(await attemptsOf(database.db, payment.id)).toHaveLength(1)
  expect(await weiOf(stage, payment.to)).toBe(1n)
})

/** A database that counts its statements. */
function counting(db: Db): { readonly db: Db; count(): number } {
  let count = 0
  const counted =
    <A extends readonly unknown[], R>(run: (...given: A) => R) =>
    (...given: A): R => {
      count += 1
      return run(...given)
    }
  return {
    count: () => count,
    db: {
      ...db,
      one: (row, statement) => counted(() => db.one(row, statement))(),
      maybeOne: (row, statement) => counted(() => db.maybeOne(row, statement))(),
      many: (row, statement) => counted(() => db.many(row, statement))(),
      run: counted(db.run),
    },
  }
}

test('lanes with nothing open make fewer than two statements a second beside the probe, and a thousand senders add no lease', async () => {
  const stage = await aStage()
  const counted = counting(database.db)
  const lanes = createLanes({ ...stage, deps: { ...stage.deps, db: counted.db }, signerOf: async () => stage.signer })
  cleanups.push(() => lanes.stop())
  const senders = Array.from(
    { length: 1_000 },
    (): Address => `0x${Buffer.from(systemRandom.bytes(20)).toString('hex')}`,
  )
  await database.db.run(sql`
    insert into lanes (network, sender, next_nonce) select ${stage.network.name}, sender, 0 from unnest(${senders}::text[]) as given (sender)`)
  await database.db.run(sql`delete from leases`)
  lanes.start([stage.handler])
  const leases = () =>
    database.db.one(
      z.object({ count: z.bigint() }),
      sql`select count(*) as count from leases where until > clock_timestamp()`,
    )
  await expect.poll(leases).toEqual({ count: 8n })
  // The statements of the start come after the leases.
  for (let known = -1; known !== counted.count(); await delay(400)) known = counted.count()
  const [from, begun] = [counted.count(), performance.now()]
  await expect.poll(() => counted.count()).toBeGreaterThan(from + 2)
  expect((counted.count() - from) / ((performance.now() - begun) / 1_000)).toBeLessThan(2)
  const plan = (account: Address) =>
    stage.db.tx((tx) =>
      lanes.planAll(tx, [
        {
          account,
          planned: { network: stage.network, to: account, data: '0x', value: 0n, gasLimit: 30_000n, purpose },
        },
      ]),
    )
  await Promise.all(senders.slice(0, 100).map(plan))
  expect(await leases()).toEqual({ count: 8n })
})

test('a planner whose host fails in the middle of its transaction blocks the nonces of its account for a while and no other account', async () => {
  const stage = await aStage()
  await stage.lanes.prepare(stage.network, stage.lane.sender)
  const gone = openDb({ url: database.url, connectionsMax: 1, log: createLog({ level: 'silent' }) })
  cleanups.push(() => gone.close().catch(() => undefined))
  const [planned, never] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const dying = gone
    .tx(async (tx) => {
      await planWith(stage, stage.lane.sender)(tx)
      planned.resolve()
      await never.promise
    })
    .catch(() => undefined)
  await planned.promise
  const payment = await planPayment(stage)
  await runLane(stage)
  expect(await weiOf(stage, payment.to)).toBe(1n)
  never.resolve()
  await dying
})

test('an isolated transaction and batches use separate slots, which include what the caller has just planned', async () => {
  const stage = await aStage()
  const { lanes, network, lane, db } = stage
  await lanes.prepare(network, lane.sender)
  const call = { network, to: lane.sender, data: '0x', value: 0n, gasLimit: 30_000n, purpose } as const
  await db.tx(async (tx) => {
    await lanes.plan(tx, lane.sender, call)
    await lanes.plan(tx, lane.sender, { ...call, slot: 'batch' })
    await lanes.plan(tx, lane.sender, { ...call, slot: 'single' })
    expect(await lanes.openCounts(tx, network, lane.sender)).toEqual({ batch: 2, single: 1 })
  })
  expect(lanes.slots).toEqual({ batch: 7, single: 3 })
  await runLane(stage)
  expect(await lanes.openCounts(db, network, lane.sender)).toEqual({ batch: 0, single: 0 })
})

test('the open lanes of a shard are found by an index without final transactions, among twenty thousand transactions', async () => {
  const { db } = database
  await db.run(sql`
    insert into chain_transactions (id, network, sender, nonce, to_address, data, value, gas_limit, purpose, status, created_at)
    select 'ctx_old' || n, 'base', '0x' || (n % 500), n, '0x', '', 0, 0, 'old', 'final', now() from generate_series(1, 20000) as n`)
  await db.run(sql`analyze chain_transactions`)
  const lines: string[] = []
  const explaining = {
    ...db,
    async many(_row: unknown, { text, values }: Sql) {
      const explained = { text: `explain ${text}`, values }
      lines.push(...(await db.many(z.record(z.string(), z.string()), explained)).flatMap((row) => Object.values(row)))
      return []
    },
  }
  const leases = [1, 2].map((shard) => ({ scope: 'lanes/base', shard, epoch: 1n }))
  await listOpenSenders(explaining, 'base', { scope: 'lanes/base', ownerToken: 'own', leaseMs: 1, leases })
  await listOpenNetworks(
    explaining,
    leases.map(({ shard }) => ({ network: 'base', shard })),
  )
  expect(lines.filter((line) => line.includes('chain_transactions_open'))).toHaveLength(2)
  expect(lines.filter((line) => line.includes('Seq Scan'))).toEqual([])
})

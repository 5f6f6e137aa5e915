import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { type Db, openDb, sql } from '../db/db.ts'
import { createLog } from '../log.ts'
import { systemRandom } from '../random.ts'
import { keepLeases, type Leases } from './leases.ts'
import {
  fencedTx,
  insertShares,
  isUnder,
  type LeaseSet,
  releaseLeases,
  renewLeases,
  type Share,
  takeLeases,
} from './store.ts'

let database: TestDatabase
const cleanups: (() => Promise<unknown>)[] = []
const log = createLog({ level: 'silent' })

beforeAll(async () => {
  database = await freshDatabase({ connectionsMax: 12 })
})
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})
afterAll(() => database?.drop())

let scopes = 0

/** Shares of a new scope without a holder. */
async function aScope(count = 2): Promise<{ readonly scope: string; readonly shares: readonly Share[] }> {
  scopes += 1
  const scope = `toy/${scopes}`
  const shares = Array.from({ length: count }, (_, shard) => ({ scope, shard }))
  await insertShares(database.db, shares)
  return { scope, shares }
}

async function take(shares: readonly Share[], ownerToken: string, leaseMs = 60_000): Promise<LeaseSet> {
  const leases = await takeLeases(database.db, shares, { ownerToken, leaseMs })
  return { scope: shares[0]?.scope ?? '', ownerToken, leaseMs, leases }
}

/** Expires the leases of a scope. */
const expire = (scope: string) =>
  database.db.run(sql`update leases set until = clock_timestamp() - interval '1 ms' where scope = ${scope}`)

/** A process that holds leases, with its own connections. */
function aHolder(shares: readonly Share[], leaseMs: number): Leases & { readonly db: Db; readonly taken: string[] } {
  const db = openDb({ url: database.url, connectionsMax: 2, log })
  const taken: string[] = []
  const leases = keepLeases({
    deps: { db, random: systemRandom, log },
    shares,
    leaseMs,
    onTaken: (scope) => taken.push(scope),
  })
  cleanups.push(async () => {
    await leases.stop()
    await db.close()
  })
  return { ...leases, db, taken }
}

/** Whether a statement that is fenced by these leases has an effect. */
async function isLetThrough(held: LeaseSet, shard = 0): Promise<boolean> {
  const rows = await database.db.many(z.object({}), sql`select 1 as one where ${isUnder(held, sql`${shard}::integer`)}`)
  return rows.length === 1
}

test('of any number of concurrent takers each share has one, and the others have none', async () => {
  const { shares } = await aScope(4)
  const all = await Promise.all(Array.from({ length: 10 }, (_, index) => take(shares, `taker-${index}`)))
  const taken = all.flatMap(({ leases }) => leases.map(({ shard }) => shard))
  expect(taken.toSorted()).toEqual([0, 1, 2, 3])
})

test('a statement under a lease has no effect after its end, after another holder, and under a shard that was never leased', async () => {
  const { scope, shares } = await aScope(1)
  const first = await take(shares, 'first')
  expect(await isLetThrough(first)).toBe(true)
  expect(await isLetThrough(first, 1)).toBe(false)
  await expire(scope)
  expect(await isLetThrough(first), 'ended and taken by nobody').toBe(false)
  const second = await take(shares, 'second')
  expect([await isLetThrough(first), await isLetThrough(second)]).toEqual([false, true])
})

test('an expired lease is not renewed, even if nobody took it: its holder must take it again', async () => {
  const { scope, shares } = await aScope(1)
  const first = await take(shares, 'first')
  await expire(scope)
  expect(await renewLeases(database.db, first.leases, first)).toEqual([])
  const again = await take(shares, 'first')
  expect(again.leases[0]?.epoch).toBe((first.leases[0]?.epoch ?? 0n) + 1n)
  expect([await isLetThrough(first), await isLetThrough(again)]).toEqual([false, true])
})

test('an epoch that is assigned twice, as after an asynchronous fail-over, admits only the holder whose token is in the row', async () => {
  const { scope, shares } = await aScope(1)
  const before = await take(shares, 'before the fail-over')
  // The standby lacks the first lease: it assigns the same epoch to another.
  await database.db.run(sql`update leases set epoch = epoch - 1, until = '-infinity' where scope = ${scope}`)
  const after = await take(shares, 'after it')
  expect(after.leases.map(({ epoch }) => epoch)).toEqual(before.leases.map(({ epoch }) => epoch))
  expect([await isLetThrough(before), await isLetThrough(after)]).toEqual([false, true])
  expect(await renewLeases(database.db, before.leases, before)).toEqual([])
  await releaseLeases(database.db, before.leases, before.ownerToken)
  expect(await isLetThrough(after)).toBe(true)
})

test('nobody takes a share while a transaction under its lease is open; renewing it waits for nothing', async () => {
  const { scope, shares } = await aScope(1)
  const first = await take(shares, 'first')
  await fencedTx(database.db, first, async (tx) => {
    await tx.many(z.object({}), sql`select 1 as one where ${isUnder(first, sql`0`)}`)
    expect(await renewLeases(database.db, first.leases, first)).toHaveLength(1)
    await expire(scope)
    expect((await take(shares, 'second')).leases).toEqual([])
  })
  expect((await take(shares, 'second')).leases).toHaveLength(1)
})

test('a holder keeps its shares for many times the lease length', async () => {
  const { scope, shares } = await aScope(3)
  const first = aHolder(shares, 300)
  await expect.poll(() => first.leasesOf(scope).leases.length).toBe(3)
  const second = aHolder(shares, 300)
  const epochs = first.leasesOf(scope).leases
  const { until } = await database.db.one(
    z.object({ until: z.date() }),
    sql`select clock_timestamp() + interval '1500 ms' as until`,
  )
  const isPast = () =>
    database.db.one(z.object({ past: z.boolean() }), sql`select clock_timestamp() > ${until} as past`)
  await expect.poll(isPast, { timeout: 5_000 }).toEqual({ past: true })
  expect(first.leasesOf(scope).leases).toEqual(epochs)
  expect(second.taken).toEqual([])
})

test('a holder that stops releases its shares long before its leases end', async () => {
  const { scope, shares } = await aScope(3)
  const first = aHolder(shares, 3_600_000)
  await expect.poll(() => first.leasesOf(scope).leases.length).toBe(3)
  const second = aHolder(shares, 300)
  await first.stop()
  await expect.poll(() => second.leasesOf(scope).leases.length).toBe(3)
})

test('a holder whose host vanished in the middle of a transaction, with its connection still open, is replaced when its lease ends', async () => {
  const { scope, shares } = await aScope(2)
  const leaseMs = 1_500
  const begun = performance.now()
  const first = await take(shares, 'vanished', leaseMs)
  const gone = openDb({ url: database.url, connectionsMax: 1, log })
  cleanups.push(() => gone.close().catch(() => undefined))
  const never = Promise.withResolvers<void>()
  const dying = fencedTx(gone, first, async (tx) => {
    await tx.many(z.object({}), sql`select 1 as one where ${isUnder(first, sql`0`)}`)
    await never.promise
  }).catch(() => undefined)
  const second = aHolder(shares, leaseMs)
  await expect.poll(() => second.leasesOf(scope).leases.length, { timeout: 10_000, interval: 10 }).toBe(2)
  expect(performance.now() - begun, 'not before the end of the lease').toBeGreaterThan(leaseMs - 50)
  never.resolve()
  await dying
})

test('there are as many rows of leases as shares, however often they change holders', async () => {
  const { scope, shares } = await aScope(8)
  for (let turn = 0; turn < 20; turn++) {
    await take(shares, `holder-${turn}`)
    await expire(scope)
  }
  const count = sql`select count(*) as count from leases where scope = ${scope}`
  expect(await database.db.one(z.object({ count: z.bigint() }), count)).toEqual({ count: 8n })
})

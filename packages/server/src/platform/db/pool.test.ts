import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { type DatabaseProxy, startDatabaseProxy } from '../../../test/database-proxy.ts'
import { createLog } from '../log.ts'
import { type Db, type DbOptions, isDatabaseGone, openDb, sql } from './db.ts'
import { type Connection, type Connections, noticedMsMax, openConnections } from './pool.ts'

let database: TestDatabase
const cleanUps: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  database = await freshDatabase()
})
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})
afterAll(() => database.drop())

const One = z.object({ one: z.number() })
const readOne = (db: Db) => db.one(One, sql`select 1 as one`)

/** A silent connection is noticed so early that a slow machine has seconds left. By default it is within five seconds. */
const hurried = { silentMsMax: 300 }

async function aProxy(): Promise<DatabaseProxy> {
  const proxy = await startDatabaseProxy(database.url)
  cleanUps.push(proxy.stop)
  return proxy
}

function open(url: string, options: Partial<DbOptions> = {}): Db {
  const db = openDb({ url, connectionsMax: 4, log: createLog({ level: 'silent' }), ...options })
  cleanUps.push(db.close)
  return db
}

/** The error, and how many milliseconds it took. */
async function failure(work: Promise<unknown>): Promise<{ error: unknown; ms: number }> {
  const begun = performance.now()
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  return { error, ms: performance.now() - begun }
}

test('by default the loss of a server is noticed within five seconds', () => {
  expect(noticedMsMax).toBeLessThan(5_000)
})

test('a frozen network fails a statement, a transaction and a new connection soon after the limit of silence', async () => {
  const proxy = await aProxy()
  const db = open(proxy.url, hurried)
  await readOne(db)
  const isOpen = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  const transaction = db.tx(async (tx) => {
    await tx.one(One, sql`select 1 as one`)
    isOpen.resolve()
    await goOn.promise
    await tx.one(One, sql`select 1 as one`)
  })
  await isOpen.promise
  proxy.freeze()
  goOn.resolve()
  const failures = await Promise.all([failure(transaction), ...Array.from({ length: 3 }, () => failure(readOne(db)))])
  for (const { error } of failures) expect(isDatabaseGone(error), String(error)).toBe(true)
  expect(Math.max(...failures.map(({ ms }) => ms))).toBeLessThan(5_000)
  proxy.thaw()
  expect(await readOne(db)).toEqual({ one: 1 })
})

test('one connection that is lost silently closes the idle ones with it, and the next statement works', async () => {
  const proxy = await aProxy()
  const db = open(proxy.url, hurried)
  await Promise.all(Array.from({ length: 4 }, () => db.many(z.object({}), sql`select pg_sleep(0.2)`)))
  expect(proxy.count()).toBe(4)
  proxy.freeze('open')
  const { error, ms } = await failure(readOne(db))
  expect(isDatabaseGone(error)).toBe(true)
  expect(ms).toBeLessThan(5_000)
  expect(await failure(readOne(db))).toMatchObject({ error: undefined })
})

test('a statement that is slow because it works or waits for a lock is not taken for a lost connection', async () => {
  const proxy = await aProxy()
  const db = open(proxy.url)
  expect(await failure(db.many(z.object({}), sql`select pg_sleep(4)`))).toMatchObject({ error: undefined })
})

test('a statement that ends while its server is queried keeps its answer', async () => {
  const db = open((await aProxy()).url)
  const slow = Array.from({ length: 4 }, (_, index) =>
    failure(db.many(z.object({}), sql`select pg_sleep(${2.1 + index / 10}::float8)`)),
  )
  expect((await Promise.all(slow)).map(({ error }) => error)).toEqual([undefined, undefined, undefined, undefined])
})

test('closing does not wait for a frozen network', async () => {
  const proxy = await aProxy()
  const db = openDb({ url: proxy.url, connectionsMax: 4, log: createLog({ level: 'silent' }), ...hurried })
  await readOne(db)
  proxy.freeze()
  const { error, ms } = await failure(db.close())
  expect([error, ms < 5_000]).toEqual([undefined, true])
})

test('of several hosts the first that takes writes is used, and kept', async () => {
  const [dead, alive] = [await aProxy(), await aProxy()]
  await dead.stop()
  const hostOf = (proxy: DatabaseProxy) => new URL(proxy.url).host
  const db = open(alive.url.replace(hostOf(alive), `${hostOf(dead)},${hostOf(alive)}`))
  expect(await readOne(db)).toEqual({ one: 1 })
  await Promise.all(Array.from({ length: 20 }, () => readOne(db)))
  expect(alive.count()).toBeGreaterThan(0)
})

test('a host that freezes is left for the next one', async () => {
  const [first, second] = [await aProxy(), await aProxy()]
  const hostOf = (proxy: DatabaseProxy) => new URL(proxy.url).host
  const db = open(first.url.replace(hostOf(first), `${hostOf(first)},${hostOf(second)}`), hurried)
  await readOne(db)
  expect([first.count() > 0, second.count()]).toEqual([true, 0])
  first.freeze()
  expect((await failure(readOne(db))).ms).toBeLessThan(5_000)
  expect(await readOne(db)).toEqual({ one: 1 })
})

test('a server without writes is refused where writes are needed, and else its refusals mean that it is unavailable', async () => {
  const url = `${database.url}&options=${encodeURIComponent('-c default_transaction_read_only=on')}`
  const any = open(url)
  expect(await readOne(any)).toEqual({ one: 1 })
  const { error } = await failure(any.run(sql`create table refused (id integer)`))
  expect(isDatabaseGone(error)).toBe(true)
  expect(isDatabaseGone((await failure(readOne(open(`${url}&target_session_attrs=read-write`)))).error)).toBe(true)
})

test.each(['40001', '40P01', '55P03', '25P03', '58030'])(
  'a statement that failed with %s may succeed later',
  async (code) => {
    const { error } = await failure(
      open(database.url).run({ text: `do $$ begin raise sqlstate '${code}'; end $$`, values: [] }),
    )
    expect(isDatabaseGone(error)).toBe(true)
  },
)

test('a statement that was parsed before a column was added works after it', async () => {
  const db = open(database.url, { connectionsMax: 1 })
  await db.run(sql`create table widened (id integer)`)
  const read = () => db.many(z.object({ id: z.number() }), sql`select * from widened`)
  expect(await read()).toEqual([])
  await database.db.run(sql`alter table widened add column more text`)
  expect(await read()).toEqual([])
})

test('a statement whose plans are stale runs again without its name, and takes no further connection that planned it', async () => {
  const db = open(database.url)
  await database.db.run(sql`create table widened_again (id integer)`)
  const read = () => db.many(z.object({ id: z.number() }), sql`select * from widened_again`)
  await Promise.all([read(), read(), read()])
  expect(db.pool?.().open).toBe(3)
  await database.db.run(sql`alter table widened_again add column more text`)
  expect(await read()).toEqual([])
  expect(db.pool?.().open).toBe(2)
})

test.each(['session', 'transaction'] as const)(
  'behind a pooler of %ss a statement and a transaction end at their timeout without start parameters',
  async (pooler) => {
    const db = open(database.url, { pooler, statementTimeoutMs: 300 })
    const { error } = await failure(db.tx((tx) => tx.many(z.object({}), sql`select pg_sleep(20)`)))
    expect(String(error)).toContain('statement timeout')
    if (pooler === 'session')
      expect(String((await failure(db.many(z.object({}), sql`select pg_sleep(20)`))).error)).toContain(
        'statement timeout',
      )
  },
)

test('a connection is the oldest free one, whichever was given back last', async () => {
  const connections = openFour()
  const oldest = await connections.acquire()
  const others = [await connections.acquire(), await connections.acquire()]
  const expected = await serverProcessOf(oldest)
  for (const one of [oldest, ...others]) one.release('usable')
  const lent: unknown[] = []
  for (let time = 1; time <= 2; time++) {
    const [alone, beside] = [await connections.acquire(), await connections.acquire()]
    lent.push(await serverProcessOf(alone))
    alone.release('usable')
    beside.release('usable')
  }
  expect(lent).toEqual([expected, expected])
})

test('a statement runs on a free connection that has planned it', async () => {
  const connections = openFour()
  const [oldest, second] = [await connections.acquire(), await connections.acquire()]
  await second.query({ name: 'seldom', text: 'select 1' })
  const expected = await serverProcessOf(second)
  for (const one of [second, oldest]) one.release('usable')
  const lent = await connections.acquire('seldom')
  const found = await serverProcessOf(lent)
  lent.release('usable')
  expect(found).toBe(expected)
})

test('two statements of one tick run each on the connection that has planned it', async () => {
  const connections = openFour()
  const three = [await connections.acquire(), await connections.acquire(), await connections.acquire()]
  const names = ['none', 'one', 'other']
  for (const [at, connection] of three.entries()) await connection.query({ name: `${names[at]}`, text: 'select 1' })
  const [, ...expected] = await Promise.all(three.map(serverProcessOf))
  for (const connection of three) connection.release('usable')
  const lent = await Promise.all(['one', 'other'].map((name) => connections.acquire(name)))
  const found = await Promise.all(lent.map(serverProcessOf))
  for (const connection of lent) connection.release('usable')
  expect(found).toEqual(expected)
})

function openFour(): Connections {
  const connections = openConnections({
    url: database.url,
    connectionsMax: 4,
    log: createLog({ level: 'silent' }),
    statementTimeoutMs: 0,
    pooler: 'none',
  })
  cleanUps.push(connections.close)
  return connections
}

async function serverProcessOf(connection: Connection): Promise<unknown> {
  const { rows } = await connection.query('select pg_backend_pid() as pid')
  return rows[0]?.pid
}

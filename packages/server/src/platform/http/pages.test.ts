import { afterAll, beforeAll, expect, test } from 'vitest'
import { counting } from '../../../test/counting-db.ts'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { toyDeps } from '../../../test/toy-deps.ts'
import type { Deps } from '../ctx.ts'
import { publicPages } from './pages.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database.drop())

/** Requests `/readyz`. */
function readyPage(more: Partial<Deps>, isStopping = false): () => Promise<{ status: number }> {
  const pages = publicPages(
    { ...toyDeps(database.db), ...more },
    [],
    () => ({}),
    () => isStopping,
  )
  const page = pages.find(({ path }) => path === '/readyz')
  const request = { method: 'GET', url: '/readyz', address: '127.0.0.1', headers: {}, body: new Uint8Array() }
  return async () => ({ status: (await page?.respond({}, request))?.status ?? 0 })
}

const readiness = (more: Partial<Deps>, isStopping = false) => readyPage(more, isStopping)()

test('calls of /readyz share one query of the database for half a second, however many there are, and later calls query again', async () => {
  const { db, statements } = counting(database.db)
  let count = 0
  let nowMs = Date.parse('2026-11-29T10:00:00Z')
  const request = readyPage({
    db,
    clock: { now: () => new Date(nowMs) },
    async lookUpKey() {
      count += 1
    },
  })
  const statuses = (await Promise.all(Array.from({ length: 50 }, request))).map(({ status }) => status)
  for (let calls = 0; calls < 1_000; calls++) statuses.push((await request()).status)
  expect([new Set(statuses), count]).toEqual([new Set([200]), 1])
  expect(statements.length).toBeLessThanOrEqual(4)
  nowMs += 499
  await request()
  expect(count).toBe(1)
  nowMs += 1
  await request()
  expect(count).toBe(2)
})

test('a database that is gone is noticed half a second after a good answer, and one that is back likewise', async () => {
  let nowMs = 0
  let isGone = false
  const request = readyPage({
    clock: { now: () => new Date(nowMs) },
    lookUpKey: () => (isGone ? Promise.reject(new Error('gone')) : Promise.resolve()),
  })
  const seen: number[] = []
  for (const gone of [false, true, false]) {
    isGone = gone
    nowMs += 500
    seen.push((await request()).status)
  }
  expect(seen).toEqual([200, 503, 200])
})

test('readiness needs the key look-up that every request needs', async () => {
  expect(await readiness({ lookUpKey: async () => undefined })).toMatchObject({ status: 200 })
  expect(await readiness({ lookUpKey: () => Promise.reject(new Error('gone')) })).toMatchObject({ status: 503 })
})

test('readiness is refused if the key look-up does not end', async () => {
  expect(await readiness({ lookUpKey: () => new Promise(() => undefined) })).toMatchObject({ status: 503 })
})

test('a stopping process is not ready', async () => {
  expect(await readiness({ lookUpKey: async () => undefined }, true)).toMatchObject({ status: 503 })
})

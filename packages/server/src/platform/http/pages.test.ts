import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { toyDeps } from '../../../test/toy-deps.ts'
import type { Deps } from '../ctx.ts'
import { publicPages } from './pages.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database.drop())

/** Requests `/readyz`. Returns its status and how many milliseconds it took. */
function readyPage(more: Partial<Deps>, isStopping = false): () => Promise<{ status: number; ms: number }> {
  const pages = publicPages(
    { ...toyDeps(database.db), ...more },
    [],
    () => ({}),
    () => isStopping,
  )
  const page = pages.find(({ path }) => path === '/readyz')
  const request = { method: 'GET', url: '/readyz', address: '127.0.0.1', headers: {}, body: new Uint8Array() }
  return async () => {
    const begun = performance.now()
    const answer = await page?.answer({}, request)
    return { status: answer?.status ?? 0, ms: performance.now() - begun }
  }
}

const readiness = (more: Partial<Deps>, isStopping = false) => readyPage(more, isStopping)()

test('calls of /readyz at the same time share one query of the database, and later calls query again', async () => {
  let count = 0
  const request = readyPage({
    async lookUpKey() {
      count += 1
    },
  })
  const statuses = (await Promise.all(Array.from({ length: 50 }, request))).map(({ status }) => status)
  expect([new Set(statuses), count]).toEqual([new Set([200]), 1])
  await request()
  expect(count).toBe(2)
})

test('readiness needs the key look-up that every request needs (O3)', async () => {
  expect(await readiness({ lookUpKey: async () => undefined })).toMatchObject({ status: 200 })
  expect(await readiness({ lookUpKey: () => Promise.reject(new Error('gone')) })).toMatchObject({ status: 503 })
})

test('readiness is refused within five seconds if the key look-up does not answer (O3)', async () => {
  const { status, ms } = await readiness({ lookUpKey: () => new Promise(() => undefined) })
  expect([status, ms < 5_000]).toEqual([503, true])
})

test('a stopping process is not ready (O14)', async () => {
  expect(await readiness({ lookUpKey: async () => undefined }, true)).toMatchObject({ status: 503 })
})

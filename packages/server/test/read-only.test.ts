import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../src/platform/db/db.ts'
import { freshDatabase, type TestDatabase } from './database.ts'
import { statement } from './fill-table.ts'
import { aWorld, codeOf, type Org, type World } from './world.ts'

let database: TestDatabase
let world: World
let org: Org

beforeAll(async () => {
  database = await freshDatabase()
  world = await aWorld({ database, config: { role: 'api' } })
  org = await world.organisation()
})
afterAll(() => world?.stop())

/** The server from now on takes writes or refuses them, as a standby does, also on connections that are opened again. */
async function become(mode: 'read-only' | 'read-write'): Promise<void> {
  const { pathname } = new URL(database.url.replace('@/', '@localhost/'))
  await database.db.tx(async (tx) => {
    await tx.run(sql`set local transaction_read_only = off`)
    await tx.run(
      statement(`alter database ${pathname.slice(1)} set default_transaction_read_only = ${mode === 'read-only'}`),
    )
  })
  const Ended = z.object({ ended: z.boolean() })
  await database.db.many(
    Ended,
    sql`select pg_terminate_backend(pid, 5000) as ended from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
  )
}

async function readiness(): Promise<unknown> {
  const response = await fetch(`${world.base}/readyz`)
  const body: Readonly<Record<string, unknown>> = await response.json()
  return { status: response.status, database: body.database }
}

test('at a server that takes no writes, /readyz and every write are 503 and reads are answered, until it takes them again', async () => {
  const { id } = await world.wallet(org)
  const { body: vault } = await world.call(org.testKey, 'POST', '/vaults', {})
  const writes = [
    ['POST', '/vaults', {}],
    ['POST', `/vaults/${vault.id}/documents`, { name: 'a', data: { text: 'a' } }],
    ['POST', `/vaults/${vault.id}/seal`, { summary: 'whole' }],
    ['PATCH', `/wallet-infra/byo-wallets/${id}`, { name: 'till' }],
    ['POST', '/wallet-infra/master-wallets', { chain: 'base-sepolia', supportedTokens: ['USDC'] }],
    ['POST', '/organisations/current/api-keys', { name: 'second', environment: 'test' }],
    ['POST', '/payments/verify', { protocol: 'x402', credential: 'stub_payment_1', price: '0.01', walletId: id }],
  ] as const
  expect(await readiness()).toEqual({ status: 200, database: 'ok' })
  await become('read-only')
  await expect.poll(readiness).toEqual({ status: 503, database: 'read-only' })
  const refusals: string[] = []
  for (const [method, path, body] of writes) {
    for (const headers of [{}, { 'idempotency-key': `${method} ${path}` }]) {
      const refused = await world.call(org.testKey, method, path, body, headers)
      refusals.push(`${path} ${refused.status} ${codeOf(refused)}`)
    }
  }
  const others = refusals.filter((refusal) => !refusal.endsWith(' 503 service-unavailable'))
  expect(others, others.join()).toEqual([])
  expect((await world.call(org.testKey, 'GET', `/vaults/${vault.id}`)).status).toBe(200)
  expect((await fetch(`${world.base}/healthz`)).status).toBe(200)
  await become('read-write')
  await expect.poll(readiness).toEqual({ status: 200, database: 'ok' })
  for (const [method, path, body] of writes)
    expect([
      path,
      (await world.call(org.testKey, method, path, body, { 'idempotency-key': `${method} ${path}` })).status < 300,
    ]).toEqual([path, true])
})

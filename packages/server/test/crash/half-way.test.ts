import { type DevChain, startChain } from '@purser/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { isDatabaseGone, sql } from '../../src/platform/db/db.ts'
import { freshDatabase, type TestDatabase } from '../database.ts'
import { type Answer, request } from '../world.ts'
import { sign } from './load.ts'
import { endEveryService, type Service } from './service.ts'
import { aDeployment, type Deployment, verifyBody } from './stage.ts'

let database: TestDatabase
let chain: DevChain
let deployment: Deployment

beforeAll(async () => {
  database = await freshDatabase({ plans: 'general' })
  chain = await startChain({ network: 'base-sepolia' })
  deployment = await aDeployment({ databaseUrl: database.url, chain })
})
afterAll(async () => {
  await endEveryService()
  await chain?.stop()
  await database?.drop()
})

const Count = z.object({ count: z.bigint() })

test('a settlement whose process died with its Idempotency-Key taken and its request not stored is settled when it is sent again', async () => {
  const first = await deployment.start()
  const { credential } = await sign(deployment, 0)
  const { body } = await post(first, '/payments/verify', verifyBody(deployment.wallet.id, credential))
  const requested = { paymentId: body.paymentId, settlementToken: body.settlementToken }
  const key = { 'idempotency-key': 'settle-1' }
  await database.db.tx(async (tx) => {
    await tx.one(
      z.object({ id: z.string() }),
      sql`select id from payments where id = ${requested.paymentId} for update`,
    )
    const lost = post(first, '/payments/settle', requested, key).catch(() => 'lost')
    await expect.poll(countKeysTaken).toBe(1n)
    await expect.poll(countBlocked).toBe(1n)
    await first.end('SIGKILL')
    expect(await lost).toBe('lost')
    await tx.one(
      z.object({ ended: z.boolean() }),
      sql`
      select pg_terminate_backend(pid, 5000) as ended from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
  })
  expect(await statusOf(requested.paymentId)).toBe('verified')

  const second = await deployment.start()
  const again = await post(second, '/payments/settle', requested, key)
  expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([202, 'true'])
  await expect.poll(() => statusOf(requested.paymentId), { timeout: 60_000 }).toBe('settled')
  await second.end('SIGTERM')
})

test('a connection lost between two statements of a transaction fails the transaction and not the process', async () => {
  const failure = await database.db
    .tx(async (tx) => {
      const { pid } = await tx.one(z.object({ pid: z.number() }), sql`select pg_backend_pid() as pid`)
      await database.db.one(z.object({ ended: z.boolean() }), sql`select pg_terminate_backend(${pid}, 5000) as ended`)
      await tx.run(sql`select 1`)
    })
    .catch((error: unknown) => error)
  expect(isDatabaseGone(failure)).toBe(true)
  expect(
    await database.db.one(Count, sql`select count(*) as count from pg_stat_activity where pid = pg_backend_pid()`),
  ).toEqual({ count: 1n })
})

function post({ base }: Service, path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  return request(base, { key: deployment.testKey, method: 'POST', path, body, headers })
}

async function countKeysTaken(): Promise<bigint> {
  return (
    await database.db.one(Count, sql`select count(*) as count from idempotency_keys where resource_id is not null`)
  ).count
}

async function countBlocked(): Promise<bigint> {
  return (
    await database.db.one(
      Count,
      sql`
    select count(*) as count from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
  ).count
}

async function statusOf(paymentId: unknown): Promise<string> {
  return (
    await database.db.one(z.object({ status: z.string() }), sql`select status from payments where id = ${paymentId}`)
  ).status
}

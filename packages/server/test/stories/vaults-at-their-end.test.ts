import { Readable } from 'node:stream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { addToCounter, plans } from '../../src/features/plans/index.ts'
import { getVault } from '../../src/features/vaults/read.ts'
import type { VaultId } from '../../src/features/vaults/schema.ts'
import { sql } from '../../src/platform/db/db.ts'
import { JsonStream } from '../../src/platform/json-stream.ts'
import { codeOf } from '../world.ts'
import { aVaultStage, countersOf, hourMs, type VaultStage } from './vaults-stage.ts'

let stage: VaultStage

beforeAll(async () => {
  stage = await aVaultStage()
})
afterAll(() => stage.world.stop())

const Waiting = z.object({ waiting: z.bigint() })

/** How many statements wait for a lock at this moment. */
async function countWaiting(): Promise<number> {
  const row = await stage.world.database.db.one(
    Waiting,
    sql`select count(*) as waiting from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  )
  return Number(row.waiting)
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds()));
}

/**
 * A vault expires, an hour from now, while `begin` is blocked in the middle of its work. Meanwhile `other` requests the
 * quota that the expiry would release, and ends or waits for a lock before `begin` continues.
 */
async function atTheEnd<A, B>(begin: () => Promise<A>, other: () => Promise<B>): Promise<readonly [A, B]> {
  stage.pass(hourMs - 1)
  const running = await stage.world.database.db.tx(async (tx) => {
    await tx.run(sql`lock table events in exclusive mode`)
    const first = begin()
    await until(async () => (await countWaiting()) > 0)
    stage.pass(1)
    let isOver = false
    const second = other().finally(() => {
      isOver = true
    })
    await until(async () => isOver || (await countWaiting()) > 1)
    return { first, second }
  })
  return Promise.all([running.first, running.second])
}

test('a vault that is extended at the moment of its expiry keeps its place: no other is made in it', async () => {
  const org = await stage.world.organisation('hobby')
  const vault = await stage.vault(org, { ttl: '1h' })
  for (const ttl of ['24h', '24h']) await stage.vault(org, { ttl })
  const [extended, made] = await atTheEnd(
    () => stage.call(org, 'POST', `/vaults/${vault}/extend`, { ttl: '24h' }),
    () => stage.call(org, 'POST', '/vaults', {}),
  )
  expect([extended.status, made.status, codeOf(made)]).toEqual([200, 429, 'vault-quota-exceeded'])
  expect((await stage.call(org, 'GET', '/vaults')).list).toHaveLength(3)
})

test('a vault that is persisted at the moment of its expiry keeps its bytes: no other vault gets their quota', async () => {
  const org = await stage.world.organisation('hobby')
  const [leaving, other] = [await stage.vault(org, { ttl: '1h' }), await stage.vault(org)]
  const document = { name: 'a', data: { text: 'x'.repeat(1_000) } }
  await stage.call(org, 'POST', `/vaults/${leaving}/documents`, document)
  const limit = plans.hobby.storageBytes
  const { storageBytes } = await countersOf(stage.world, org)
  const { db } = stage.world.database
  const tenant = { organisationId: org.id, environment: 'test' } as const
  await db.tx((tx) => addToCounter(tx, { tenant, kind: 'storageBytes', period: 'all', n: limit - (storageBytes ?? 0) }))
  const [persisted, added] = await atTheEnd(
    () => stage.call(org, 'POST', `/vaults/${leaving}/persist`),
    () => stage.call(org, 'POST', `/vaults/${other}/documents`, document),
  )
  expect([persisted.status, added.status, codeOf(added)]).toEqual([200, 429, 'storage-quota-exceeded'])
  expect(await countersOf(stage.world, org)).toMatchObject({ storageBytes: limit })
})

test('a vault that expires while its extension waits for the counters is gone: another may have its place by then', async () => {
  const org = await stage.world.organisation('hobby')
  const vaults = [await stage.vault(org, { ttl: '1h' }), await stage.vault(org, { ttl: '1h' })]
  stage.pass(hourMs - 1)
  const answers = await stage.world.database.db.tx(async (tx) => {
    await tx.run(
      sql`select 1 from usage_counters where organisation_id = ${org.id} and kind = 'activeVaults' for update`,
    )
    const [extended, persisted] = [`/vaults/${vaults[0]}/extend`, `/vaults/${vaults[1]}/persist`]
    const begun = [stage.call(org, 'POST', extended, { ttl: '24h' }), stage.call(org, 'POST', persisted)]
    await until(async () => (await countWaiting()) === 2)
    stage.pass(1)
    return begun
  })
  expect((await Promise.all(answers)).map(codeOf)).toEqual(['vault-not-found', 'vault-not-found'])
})

test('a large vault that is deleted while it is read is not read to its end', async () => {
  const org = await stage.world.organisation('pro')
  const vault = await stage.vault(org)
  const { db } = stage.world.database
  await db.run(sql`
    insert into vault_documents (vault_id, id, organisation_id, environment, name, data, size, sha256, created_at)
    select ${vault}, 'doc_' || lpad(n::text, 26, '0'), ${org.id}, 'test', repeat('n', 200), '{}'::json, 2, repeat('0', 64), now()
    from generate_series(1, 2000) as n`)
  await db.run(sql`update vaults set document_count = 2000 where id = ${vault}`)
  const read = await getVault(stage.ctx(org), vault as VaultId)
  if (!(read instanceof JsonStream)) throw new Error('the vault is not large')
  const pieces = z.instanceof(Readable).parse(read.body)[Symbol.asyncIterator]()
  await pieces.next()
  expect((await stage.call(org, 'DELETE', `/vaults/${vault}`)).status).toBe(204)
  const rest = async () => {
    while ((await pieces.next()).done !== true);
  }
  await expect(rest()).rejects.toMatchObject({ code: 'vault-not-found' })
})

import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import {
  aVaultStage,
  countersOf,
  hourMs,
  reportOf,
  streamOf,
  type VaultStage,
} from '../../../test/stories/vaults-stage.ts'
import type { Org } from '../../../test/world.ts'
import { sql } from '../../platform/db/db.ts'

let stage: VaultStage

beforeAll(async () => {
  stage = await aVaultStage()
})
afterAll(() => stage.world.stop())

async function reportedTypes(org: Org, vaultId: string): Promise<string[]> {
  return (await reportOf(stage.world, org)).filter(({ payload }) => payload.vaultId === vaultId).map(({ type }) => type)
}

async function streamTypes(vaultId: string): Promise<string[]> {
  return (await streamOf(stage.world, vaultId)).map(({ event }) => event.type)
}

test('the end is reported one hour before, once, to webhooks and to the stream', async () => {
  const org = await stage.world.organisation('pro')
  const id = await stage.vault(org, { ttl: '3h' })
  const expiresAt = new Date(stage.now().getTime() + 3 * hourMs).toISOString()
  stage.pass(2 * hourMs - 1)
  await stage.follow()
  expect(await reportedTypes(org, id)).toEqual([])
  stage.pass(1)
  for (let round = 0; round < 3; round++) await stage.follow()
  expect(await reportOf(stage.world, org)).toEqual([{ type: 'vault.expiring', payload: { vaultId: id, expiresAt } }])
  const last = (await streamOf(stage.world, id)).at(-1)
  expect(last?.event).toMatchObject({ type: 'vault.expiring', payload: { expiresAt } })
})

test.each(['1m', '60m', '1h'])('a vault created for %s is reported as expiring at once', async (ttl) => {
  const org = await stage.world.organisation('pro')
  const id = await stage.vault(org, { ttl })
  expect(await streamTypes(id)).toEqual(['vault.created', 'vault.expiring'])
  await stage.follow()
  expect(await reportedTypes(org, id)).toEqual(['vault.expiring'])
})

test('extending reports the new end again: one hour before it, or at once if it is near', async () => {
  const org = await stage.world.organisation('pro')
  const id = await stage.vault(org, { ttl: '2h' })
  stage.pass(hourMs)
  await stage.follow()
  const extended = await stage.call(org, 'POST', `/vaults/${id}/extend`, { ttl: '5h' })
  const expiresAt = new Date(stage.now().getTime() + 5 * hourMs).toISOString()
  expect([extended.status, extended.body.ttl]).toEqual([200, expiresAt])
  stage.pass(4 * hourMs - 1)
  await stage.follow()
  expect(await reportedTypes(org, id)).toEqual(['vault.expiring', 'vault.extended'])
  stage.pass(1)
  await stage.follow()
  await stage.call(org, 'POST', `/vaults/${id}/extend`, { ttl: '1h' })
  await stage.follow()
  expect(await reportedTypes(org, id)).toEqual([
    'vault.expiring',
    'vault.extended',
    'vault.expiring',
    'vault.extended',
    'vault.expiring',
  ])
  expect(await streamTypes(id)).toEqual([
    'vault.created',
    'vault.expiring',
    'vault.extended',
    'vault.expiring',
    'vault.extended',
    'vault.expiring',
  ])
})

test('the end of a sealed vault is reported to webhooks only', async () => {
  const org = await stage.world.organisation('pro')
  const id = await stage.vault(org, { ttl: '2h' })
  await stage.call(org, 'POST', `/vaults/${id}/seal`, {})
  stage.pass(hourMs)
  await stage.follow()
  expect(await reportedTypes(org, id)).toEqual(['vault.sealed', 'vault.expiring'])
  expect(await streamTypes(id)).toEqual(['vault.created', 'vault.sealed'])
})

test('a persisted vault neither expires nor is reported as expiring', async () => {
  const org = await stage.world.organisation('pro')
  const id = await stage.vault(org, { ttl: '2h' })
  await stage.call(org, 'POST', `/vaults/${id}/persist`)
  stage.pass(1_000 * hourMs)
  await stage.follow()
  expect(await reportedTypes(org, id)).toEqual(['vault.persisted'])
  expect((await stage.call(org, 'GET', `/vaults/${id}`)).body).toMatchObject({ status: 'persisted', ttl: null })
})

test('at its end a vault is deleted with its contents, its counts are released, and one event reports it', async () => {
  const org = await stage.world.organisation('pro')
  const id = await stage.vault(org, { ttl: '1h' })
  const expiredAt = new Date(stage.now().getTime() + hourMs).toISOString()
  await stage.call(org, 'POST', `/vaults/${id}/documents`, { name: 'a', data: { a: 1 } })
  const { db } = stage.world.database
  await db.run(sql`
    insert into vault_files (vault_id, id, organisation_id, environment, name, mime_type, size, sha256, blob_key, created_at)
    values (${id}, 'fil_01h455vb4pex5vsknk084sn02q', ${org.id}, 'test', 'a', 'text/plain', 5, 'ab', 'blob-expired', ${stage.now()})`)
  stage.pass(hourMs + 5)
  for (let round = 0; round < 3; round++) await stage.follow()
  await stage.deleteContents()
  expect((await reportOf(stage.world, org)).at(-1)).toEqual({
    type: 'vault.expired',
    payload: { vaultId: id, expiredAt },
  })
  expect(await reportedTypes(org, id)).toEqual(['vault.expiring', 'vault.expired'])
  for (const rows of [
    sql`select 1 from vaults where id = ${id}`,
    sql`select 1 from vault_documents where vault_id = ${id}`,
    sql`select 1 from vault_files where vault_id = ${id}`,
    sql`select 1 from vault_events where vault_id = ${id}`,
  ])
    expect(await db.run(rows)).toBe(0)
  expect(await db.run(sql`select 1 from blob_deletions where blob_key = 'blob-expired'`)).toBe(1)
  expect(await countersOf(stage.world, org)).toEqual({ activeVaults: 0, persistedVaults: 0, storageBytes: 0 })
})

test('what became due while every process was down is reported when one is back, the warning before the end', async () => {
  const org = await stage.world.organisation('pro')
  const id = await stage.vault(org, { ttl: '2h' })
  stage.pass(500 * hourMs)
  await stage.follow()
  expect(await reportedTypes(org, id)).toEqual(['vault.expiring', 'vault.expired'])
})

test('of more vaults than one batch takes, every one is reported and swept', async () => {
  const org = await stage.world.organisation('enterprise')
  const ids = await Promise.all(Array.from({ length: 120 }, () => stage.vault(org, { ttl: '2h' })))
  stage.pass(hourMs)
  await stage.follow()
  expect((await reportOf(stage.world, org)).map(({ payload }) => payload.vaultId).sort()).toEqual(ids.sort())
  stage.pass(hourMs)
  await stage.follow()
  const expired = (await reportOf(stage.world, org)).filter(({ type }) => type === 'vault.expired')
  expect(expired.map(({ payload }) => payload.vaultId).sort()).toEqual(ids.sort())
  expect(await countersOf(stage.world, org)).toMatchObject({ activeVaults: 0 })
})

test('one tenant’s failure does not block another’s vaults', async () => {
  const [broken, sound] = [await stage.world.organisation('pro'), await stage.world.organisation('pro')]
  const ids = [await stage.vault(broken, { ttl: '1h' }), await stage.vault(sound, { ttl: '1h' })] as const
  const { db } = stage.world.database
  await db.run(sql`create function refuse() returns trigger as $$ begin raise exception 'no'; end $$ language plpgsql`)
  await db.run(sql`
    create trigger refuse before delete on vaults for each row when (old.description = 'kept') execute function refuse()`)
  await db.run(sql`update vaults set description = 'kept' where id = ${ids[0]}`)
  stage.pass(hourMs)
  await stage.follow()
  expect(await reportedTypes(sound, ids[1])).toEqual(['vault.expiring', 'vault.expired'])
  expect(await reportedTypes(broken, ids[0])).toEqual(['vault.expiring'])
  await db.run(sql`drop trigger refuse on vaults`)
  await stage.follow()
  expect(await reportedTypes(broken, ids[0])).toEqual(['vault.expiring', 'vault.expired'])
})

/** Vaults with rows of events, files, tokens and documents that their counters do not show. */
async function largeVaults(org: Org, count: number, rows: number): Promise<readonly string[]> {
  const ids = await Promise.all(Array.from({ length: count }, () => stage.vault(org, { ttl: '1h' })))
  const { db } = stage.world.database
  await db.run(sql`
    insert into vault_events (vault_id, sequence, id, organisation_id, environment, type, payload, created_at)
    select vault_id, 1000 + n, 'evt_' || n, ${org.id}, 'test', 'a', '{}', ${stage.now()}
    from unnest(${ids}::text[]) as vault_id, generate_series(1, ${rows}::int) as n`)
  await db.run(sql`
    insert into vault_documents (vault_id, id, organisation_id, environment, name, data, size, sha256, created_at)
    select vault_id, 'doc_' || n, ${org.id}, 'test', 'a', '{}', 2, 'ab', ${stage.now()}
    from unnest(${ids}::text[]) as vault_id, generate_series(1, ${rows / 10}::int) as n`)
  await db.run(sql`
    insert into vault_files (vault_id, id, organisation_id, environment, name, mime_type, size, sha256, blob_key, created_at)
    select vault_id, 'fil_' || vault_id || n, ${org.id}, 'test', 'a', 'text/plain', 0, 'ab', 'large/' || vault_id || n, ${stage.now()}
    from unnest(${ids}::text[]) as vault_id, generate_series(1, ${rows}::int) as n`)
  await db.run(sql`
    insert into vault_tokens (id, token_hash, kind, organisation_id, environment, vault_id, expires_at, created_at)
    select 'vat_' || vault_id || n, sha256((vault_id || n)::bytea), 'token', ${org.id}, 'test', vault_id, ${stage.now()}, ${stage.now()}
    from unnest(${ids}::text[]) as vault_id, generate_series(1, ${rows}::int) as n`)
  return ids
}

function contentsLeft(ids: readonly string[]): Promise<number> {
  const { db } = stage.world.database
  return db.run(sql`
    select 1 from vault_events where vault_id = any(${ids}::text[]) union all
    select 1 from vault_documents where vault_id = any(${ids}::text[]) union all
    select 1 from vault_files where vault_id = any(${ids}::text[]) union all
    select 1 from vault_tokens where vault_id = any(${ids}::text[])`)
}

const manyRows = [sql`vault_events`, sql`vault_files`, sql`vault_tokens`]

test('expired vaults with many events, files and tokens are reported before their contents are deleted, and no statement deletes more than five thousand rows', async () => {
  const [org, other] = [await stage.world.organisation('pro'), await stage.world.organisation('pro')]
  const { db } = stage.world.database
  const ids = await largeVaults(org, 3, 6_000)
  const small = await stage.vault(other, { ttl: '1h' })
  await db.run(sql`create table deletions_of_a_statement (rows bigint not null)`)
  await db.run(sql`create function note_deletions() returns trigger language plpgsql as $$ begin
    insert into deletions_of_a_statement select count(*) from gone; return null; end $$`)
  for (const table of manyRows)
    await db.run(
      sql`create trigger note_deletions after delete on ${table} referencing old table as gone for each statement execute function note_deletions()`,
    )
  stage.pass(hourMs)
  await stage.follow()
  for (const [one, vaultId] of [...ids.map((id) => [org, id] as const), [other, small] as const])
    expect(await reportedTypes(one, vaultId)).toContain('vault.expired')
  expect(await contentsLeft(ids), 'no contents are deleted with their vault').toBeGreaterThan(54_000)
  await stage.deleteContents()
  expect(await contentsLeft([...ids, small])).toBe(0)
  expect(await db.run(sql`select 1 from deleted_vaults`)).toBe(0)
  expect(await db.run(sql`select 1 from deletions_of_a_statement where rows > 5000`)).toBe(0)
  expect(await db.run(sql`select 1 from deletions_of_a_statement where rows = 5000`)).toBe(9)
  expect(await db.run(sql`select 1 from blob_deletions where blob_key like 'large/%'`)).toBe(18_000)
  for (const table of manyRows) await db.run(sql`drop trigger note_deletions on ${table}`)
})

test('a vault with many events, files and tokens is deleted at once, and its contents follow', async () => {
  const org = await stage.world.organisation('pro')
  const [id = ''] = await largeVaults(org, 1, 6_000)
  expect((await stage.call(org, 'DELETE', `/vaults/${id}`)).status).toBe(204)
  expect(await contentsLeft([id])).toBeGreaterThan(18_000)
  await stage.deleteContents()
  expect(await contentsLeft([id])).toBe(0)
})

test('a deleted vault stays queued while it has files or tokens, whatever the previous version deletes', async () => {
  const org = await stage.world.organisation('pro')
  const [id = ''] = await largeVaults(org, 1, 10)
  await stage.call(org, 'DELETE', `/vaults/${id}`)
  const { db } = stage.world.database
  expect(await db.run(sql`delete from deleted_vaults where vault_id = ${id}`)).toBe(0)
  await stage.deleteContents()
  expect([await contentsLeft([id]), await db.run(sql`select 1 from deleted_vaults`)]).toEqual([0, 0])
})

test('the vaults of a tenant that has many to end do not hold up those of another', async () => {
  const [many, one] = [await stage.world.organisation('enterprise'), await stage.world.organisation('pro')]
  for (let count = 0; count < 120; count += 1) await stage.vault(many, { ttl: '3h' })
  const id = await stage.vault(one, { ttl: '3h' })
  const ended = async () => {
    const rows = await stage.world.database.db.many(
      z.object({ type: z.string(), vaultId: z.string() }),
      sql`select type, payload->>'vaultId' as vault_id from events
        where type in ('vault.expiring', 'vault.expired') and organisation_id = any(${[many.id, one.id]}::text[]) order by ctid`,
    )
    return ['vault.expiring', 'vault.expired'].map((type) =>
      rows.filter((row) => row.type === type).findIndex(({ vaultId }) => vaultId === id),
    )
  }
  stage.pass(2 * hourMs)
  await stage.follow()
  expect((await ended())[0]).toBeLessThanOrEqual(50)
  stage.pass(hourMs)
  await stage.follow()
  expect((await ended())[1]).toBeLessThanOrEqual(50)
  expect((await countersOf(stage.world, many)).activeVaults).toBe(0)
})

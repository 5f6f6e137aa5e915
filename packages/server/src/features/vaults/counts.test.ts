import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { aVaultStage, countersOf, hourMs, type VaultStage } from '../../../test/stories/vaults-stage.ts'
import type { Org } from '../../../test/world.ts'
import { type Db, type Sql, sql } from '../../platform/db/db.ts'
import { systemCtx } from '../../platform/work/runner.ts'
import { checkCounts, countingVaults, summingBytes } from './count-store.ts'
import { countVaults } from './counts.ts'

let stage: VaultStage
let db: Db

beforeAll(async () => {
  stage = await aVaultStage()
  db = stage.world.database.db
})
afterAll(() => stage.world.stop())

let made = 0

/** An organisation with this many active vaults of 10 bytes, and a third of it persisted. Its counters are empty. */
async function withVaults(active: number): Promise<Org> {
  const org = await stage.world.organisation('enterprise')
  const expires = new Date(stage.now().getTime() + 24 * hourMs)
  await db.run(sql`
    insert into vaults (id, organisation_id, environment, metadata, expires_at, persisted_at, bytes, event_hash, event_at, counted_as, created_at)
    select 'vlt_' || lpad((${made}::integer + n)::text, 26, '0'), ${org.id}, 'test', '{}', case when n <= ${active}::integer then ${expires}::timestamptz end,
      case when n > ${active}::integer then ${stage.now()}::timestamptz end, 10, '', ${stage.now()}, case when n <= ${active}::integer then 'active' else 'persisted' end, ${stage.now()}
    from generate_series(1, ${active + Math.floor(active / 3)}::integer) as n`)
  made += 2 * active
  return org
}

const Counts = z.object({
  activeVaults: z.bigint().transform(Number),
  persistedVaults: z.bigint().transform(Number),
  storageBytes: z.bigint().transform(Number),
})

const countsIn = ({ id }: Org, table: Sql) =>
  db.one(
    Counts,
    sql`
    select coalesce(sum(active), 0)::bigint as active_vaults, coalesce(sum(persisted), 0)::bigint as persisted_vaults,
      coalesce(sum(bytes), 0)::bigint as storage_bytes
    from ${table} as counted where organisation_id = ${id} and environment = 'test'`,
  )

/** The actual numbers, counted row by row. */
const vaultsOf = (org: Org) =>
  countsIn(
    org,
    sql`(select *, (counted_as = 'active')::integer as active, (counted_as = 'persisted')::integer as persisted from vaults)`,
  )

const rebuild = async (org: Org) =>
  expect((await stage.call(org, 'POST', '/billing/rebuild-cache', {})).status).toBe(200)
const addUp = () => countVaults.run(systemCtx(stage.world.server.deps))

test('a rebuild corrects the counters of an organisation with many vaults, before and after changes are added up', async () => {
  const org = await withVaults(1_200)
  await rebuild(org)
  expect(await countersOf(stage.world, org)).toEqual({
    activeVaults: 1_200,
    persistedVaults: 400,
    storageBytes: 16_000,
  })
  const id = await stage.vault(org)
  await stage.call(org, 'POST', `/vaults/${id}/documents`, { name: 'a', data: { t: 'x'.repeat(1_000) } })
  await stage.call(org, 'POST', `/vaults/${id}/persist`)
  expect((await stage.call(org, 'DELETE', `/vaults/${await stage.vault(org)}`)).status).toBe(204)
  for (const step of [async () => undefined, addUp]) {
    await step()
    await db.run(sql`update usage_counters set used = used + 7 where organisation_id = ${org.id}`)
    await rebuild(org)
    expect(await countersOf(stage.world, org)).toEqual(await vaultsOf(org))
  }
  expect(await countsIn(org, sql`vault_counts`)).toEqual(await vaultsOf(org))
})

test('the contents of few vaults are counted one by one, whatever other counts say', async () => {
  const org = await stage.world.organisation('pro')
  const id = await stage.vault(org)
  await stage.call(org, 'POST', `/vaults/${id}/documents`, { name: 'a', data: {} })
  const right = await countersOf(stage.world, org)
  await db.run(sql`update vaults set bytes = bytes + 100 where id = ${id}`)
  await db.run(sql`update usage_counters set used = used + 7 where organisation_id = ${org.id}`)
  await rebuild(org)
  expect(await countersOf(stage.world, org)).toEqual(right)
})

const Plan: z.ZodType<Plan> = z.object({
  'Relation Name': z.string().optional(),
  'Actual Rows': z.number(),
  'Actual Loops': z.number(),
  'Rows Removed by Filter': z.number().optional(),
  Plans: z.array(z.lazy(() => Plan)).optional(),
})
interface Plan {
  readonly 'Relation Name'?: string | undefined
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number | undefined
  readonly Plans?: readonly Plan[] | undefined
}

function rowsRead(plan: Plan): number {
  const own = (plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0)) * plan['Actual Loops']
  return (
    (plan['Relation Name'] === undefined ? 0 : own) + (plan.Plans ?? []).reduce((sum, one) => sum + rowsRead(one), 0)
  )
}

test('a recount of many vaults reads a thousand rows, however many there are', async () => {
  const org = await withVaults(9_000)
  await addUp()
  await db.run({ text: 'analyze vaults', values: [] })
  const tenant = { organisationId: org.id, environment: 'test' } as const
  for (const counting of [
    countingVaults(tenant, 'active'),
    countingVaults(tenant, 'persisted'),
    summingBytes(tenant),
  ]) {
    const { 'QUERY PLAN': explained } = await db.one(z.object({ 'QUERY PLAN': z.tuple([z.object({ Plan })]) }), {
      text: `explain (analyze, format json) ${counting.text}`,
      values: counting.values,
    })
    expect(rowsRead(explained[0].Plan)).toBeLessThan(1_100)
  }
})

test('a check corrects counts that are wrong and reports it, and leaves right ones alone', async () => {
  const [wrong, right] = [await withVaults(1_100), await withVaults(1_100)]
  await addUp()
  await db.run(sql`update vault_counts set active = active - 5, bytes = bytes + 1 where organisation_id = ${wrong.id}`)
  const found = []
  const tomorrow = new Date(Date.now() + 48 * hourMs)
  for (;;) {
    const checked = await checkCounts(db, { now: tomorrow, before: tomorrow })
    if (checked === undefined) break
    found.push({ id: checked.tenant.organisationId, wasWrong: checked.wasWrong })
  }
  expect(found).toContainEqual({ id: wrong.id, wasWrong: true })
  expect(found).toContainEqual({ id: right.id, wasWrong: false })
  await rebuild(wrong)
  expect(await countersOf(stage.world, wrong)).toEqual(await vaultsOf(wrong))
})

test('vaults that are made, filled, persisted and deleted while counters are rebuilt and counts are checked count once', async () => {
  const org = await withVaults(1_001)
  await rebuild(org)
  const later = new Date(Date.now() + 48 * hourMs)
  let open = 4
  const lane = async (lane: number): Promise<void> => {
    for (let turn = 0; turn < 12; turn++) {
      const id = await stage.vault(org)
      await stage.call(org, 'POST', `/vaults/${id}/documents`, { name: 'a', data: { t: 'x'.repeat(turn * 10) } })
      if ((turn + lane) % 3 === 0) await stage.call(org, 'POST', `/vaults/${id}/persist`)
      if ((turn + lane) % 3 === 1) expect((await stage.call(org, 'DELETE', `/vaults/${id}`)).status).toBe(204)
    }
    open -= 1
  }
  const beside = async (work: () => Promise<unknown>): Promise<void> => {
    while (open > 0) await work()
  }
  const check = async () =>
    expect((await checkCounts(db, { now: stage.now(), before: later }))?.wasWrong ?? false).toBe(false)
  await Promise.all([
    ...[0, 1, 2, 3].map(lane),
    beside(() => rebuild(org)),
    beside(() => rebuild(org)),
    ...[addUp, addUp, check, check].map(beside),
  ])
  expect(await countersOf(stage.world, org)).toEqual(await vaultsOf(org))
  await addUp()
  expect(await countsIn(org, sql`vault_counts`)).toEqual(await vaultsOf(org))
})

test('counts whose comparison fails delay no other tenant', async () => {
  const [first, second] = [await withVaults(3), await withVaults(3)]
  for (const org of [first, second]) await rebuild(org)
  await addUp()
  for (const [org, day] of [
    [first, 1],
    [second, 2],
  ] as const)
    await db.run(sql`
      update vault_counts set active = 7, checked_at = '2020-01-01'::timestamptz + ${day}::integer * interval '1 day' where organisation_id = ${org.id}`)
  await db.run({
    values: [],
    text: `alter table vault_count_changes add constraint refused check (organisation_id <> '${first.id}')`,
  })
  const check = () => checkCounts(db, { now: stage.now(), before: new Date('2021-01-01') })
  const [failed, corrected, none] = [await check(), await check(), await check()]
  expect(failed?.error).toBeDefined()
  expect([failed?.tenant.organisationId, corrected?.tenant.organisationId, none]).toEqual([
    first.id,
    second.id,
    undefined,
  ])
  expect(corrected?.wasWrong).toBe(true)
  await db.run({ values: [], text: 'alter table vault_count_changes drop constraint refused' })
})

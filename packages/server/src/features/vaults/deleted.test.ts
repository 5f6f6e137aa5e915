import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { aVaultStage, countersOf, hourMs, type VaultStage } from '../../../test/stories/vaults-stage.ts'
import type { Org } from '../../../test/world.ts'
import { sql } from '../../platform/db/db.ts'
import { systemCtx } from '../../platform/work/runner.ts'
import { endVaultsOfDeleted } from './deleted.ts'

let stage: VaultStage

beforeAll(async () => {
  stage = await aVaultStage()
})
afterAll(() => stage?.world.stop())

const end = () => endVaultsOfDeleted.run(systemCtx(stage.world.server.deps))
const setDeleted = ({ id }: Org, at: Date | null) =>
  stage.world.database.db.run(sql`update organisations set deleted_at = ${at} where id = ${id}`)

async function aPersisted(org: Org): Promise<string> {
  const id = await stage.vault(org)
  await stage.call(org, 'POST', `/vaults/${id}/documents`, { name: 'a', data: { a: 1 } })
  await stage.call(org, 'POST', `/vaults/${id}/persist`, {})
  return id
}

async function vaultsOf({ id }: Org): Promise<string[]> {
  const rows = await stage.world.database.db.many(
    z.object({ id: z.string() }),
    sql`select id from vaults where organisation_id = ${id} order by id`,
  )
  return rows.map((row) => row.id)
}

test('31 days after its organisation was deleted a persisted vault ends, sealed or not, with its counts and a record', async () => {
  const [org, other] = [await stage.world.organisation('pro'), await stage.world.organisation('pro')]
  const [kept, first, sealed] = [await aPersisted(other), await aPersisted(org), await aPersisted(org)]
  await stage.call(org, 'POST', `/vaults/${sealed}/seal`, {})
  await setDeleted(org, stage.now())
  stage.pass(31 * 24 * hourMs - 1)
  await end()
  expect(await vaultsOf(org)).toEqual([first, sealed].toSorted())
  stage.pass(1)
  await Promise.all([end(), end()])
  expect([await vaultsOf(org), await vaultsOf(other)]).toEqual([[], [kept]])
  expect(await countersOf(stage.world, org)).toEqual({ activeVaults: 0, persistedVaults: 0, storageBytes: 0 })
  const records = await stage.world.database.db.many(
    z.object({ target: z.string(), actor: z.object({ kind: z.string() }) }),
    sql`select target, actor from audit_log where organisation_id = ${org.id} and action = 'vaults.delete' order by target`,
  )
  expect(records).toEqual([first, sealed].toSorted().map((target) => ({ target, actor: { kind: 'system' } })))
})

test('the vaults of an organisation that is restored in time stay', async () => {
  const org = await stage.world.organisation('pro')
  const kept = await aPersisted(org)
  await setDeleted(org, stage.now())
  stage.pass(40 * 24 * hourMs)
  await setDeleted(org, null)
  await end()
  expect(await vaultsOf(org)).toEqual([kept])
})

import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { lockPresent } from '../../src/features/vaults/index.ts'
import { sql } from '../../src/platform/db/db.ts'
import { isId } from '../../src/platform/ids.ts'
import { formOf, upload } from '../files/uploads.ts'
import { codeOf, countByStatus, type Org } from '../world.ts'
import { aVaultStage, type VaultStage } from './vaults-stage.ts'

let stage: VaultStage

beforeAll(async () => {
  stage = await aVaultStage()
})
afterAll(() => stage.world.stop())

test('another tenant’s vault that is being written to is answered like one that never existed, without waiting for its writers', async () => {
  const [owner, stranger] = [await stage.world.organisation(), await stage.world.organisation()]
  const vaultId = await stage.vault(owner)
  if (!isId('vlt', vaultId)) throw new Error('no vault')
  const writing = stage.ctx(owner)
  const answers = await writing.db.tx(async (tx) => {
    await lockPresent(tx, writing, vaultId)
    return Promise.all([
      stage.call(stranger, 'POST', `/vaults/${vaultId}/emit`, { event: 'knock' }),
      stage.world.call(owner.liveKey, 'POST', `/vaults/${vaultId}/emit`, { event: 'knock' }),
    ])
  })
  expect(answers.map(codeOf)).toEqual(['vault-not-found', 'vault-not-found'])
})

const Waiting = z.object({ count: z.bigint().transform(Number) })

/** Connections that wait for a lock, in any process. */
async function waitingForLocks(): Promise<number> {
  const { count } = await stage.world.database.db.one(
    Waiting,
    sql`select count(*) as count from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  )
  return count
}

test.each(['vault', 'storage counter'])(
  'a hundred writers that wait for one %s, keyed or not, leave connections for other requests',
  async (locked) => {
    const [busy, other] = [await stage.world.organisation('pro'), await stage.world.organisation('pro')]
    const [vaultId, quietId] = [await stage.vault(busy), await stage.vault(busy)]
    await stage.call(busy, 'POST', `/vaults/${quietId}/documents`, { name: 'a', data: {} })
    const vaultIds = locked === 'vault' ? [vaultId] : [vaultId, ...(await Promise.all(manyVaults(busy)))]
    const writers = await stage.world.database.db.tx(async (tx) => {
      if (locked === 'vault') await tx.run(sql`select 1 from vaults where id = ${vaultId} for update`)
      else
        await tx.run(
          sql`select 1 from usage_counters where organisation_id = ${busy.id} and kind = 'storageBytes' for update`,
        )
      const started = Array.from({ length: 100 }, (_, turn) => write(busy, vaultIds[turn % vaultIds.length], turn))
      await expect.poll(waitingForLocks).toBeGreaterThanOrEqual(2)
      // Few enough to end before a waiting writer is answered 503, also on a slow machine.
      for (let calls = 0; calls < 5; calls++) {
        expect((await stage.call(other, 'POST', '/vaults', {})).status).toBe(201)
        await stage.call(other, 'DELETE', `/vaults/${String((await stage.call(other, 'GET', '/vaults')).list[0]?.id)}`)
        expect((await stage.call(busy, 'GET', `/vaults/${quietId}`)).status).toBe(200)
      }
      if (locked === 'vault') {
        expect((await stage.call(busy, 'POST', `/vaults/${quietId}/emit`, { event: 'a' })).status).toBe(201)
        expect(await waitingForLocks()).toBe(2)
      }
      expect(await waitingForLocks()).toBeLessThanOrEqual(8)
      return started
    })
    expect(countByStatus(await Promise.all(writers))).toEqual({ 201: 100 })
  },
)

function manyVaults(org: Org): Promise<string>[] {
  return Array.from({ length: 30 }, () => stage.vault(org))
}

function write(org: Org, vaultId: string | undefined, turn: number) {
  const headers: Record<string, string> = turn % 2 === 0 ? {} : { 'idempotency-key': `${vaultId}-${turn}` }
  const path = `/vaults/${vaultId}`
  if (turn % 4 < 2) return stage.world.call(org.testKey, 'POST', `${path}/emit`, { event: 'a' }, headers)
  if (turn % 4 === 2 || turn % 8 === 3)
    return stage.world.call(org.testKey, 'POST', `${path}/documents`, { name: 'a', data: {} }, headers)
  const body = formOf({ filename: 'a.txt', content: 'x' })
  return upload(stage.world.base, { key: org.testKey, vaultId: String(vaultId), body, headers })
}

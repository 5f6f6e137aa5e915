import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { aFileStage, type FileStage } from '../../../../test/files/file-stage.ts'
import { type BlobKey, isBlobKey } from '../../../files/index.ts'
import { sql } from '../../../platform/db/db.ts'
import { bindTasks } from '../../../platform/work/runner.ts'
import { deleteUnreferencedFiles } from './delete-unreferenced.ts'

let stage: FileStage

beforeAll(async () => {
  stage = await aFileStage()
})
afterAll(() => stage?.world.stop())

const minuteMs = 60_000

/** Runs one deletion in which the store deletes blobs by `remove`; returns how often it discarded incomplete contents. */
async function deleteBy(remove: (key: BlobKey) => Promise<void>, stopping?: AbortSignal): Promise<number> {
  const ctx = stage.world.server.deps
  let discards = 0
  const blobs = {
    ...ctx.blobs,
    put: ctx.blobs.put.bind(ctx.blobs),
    open: ctx.blobs.open.bind(ctx.blobs),
    list: ctx.blobs.list.bind(ctx.blobs),
    discardPartial(before: Date, isStopping?: AbortSignal) {
      discards += 1
      return ctx.blobs.discardPartial(before, isStopping)
    },
    delete: remove,
  }
  const [task] = bindTasks({ ...ctx, blobs }, [deleteUnreferencedFiles])
  await task?.run(Object.assign(() => undefined, stopping && { stopping }))
  return discards
}

/** Runs one deletion in which the store fails to delete some blobs; returns the blobs that it was requested to delete. */
async function deleteWithout(isStuck: (key: BlobKey) => boolean): Promise<BlobKey[]> {
  const { blobs } = stage.world.server.deps
  const requested: BlobKey[] = []
  await deleteBy(async (key) => {
    requested.push(key)
    if (isStuck(key)) throw new Error('the store failed')
    await blobs.delete(key)
  })
  return requested
}

async function queue(count: number, owner = 'org_0'): Promise<BlobKey[]> {
  const place = createHash('sha256').update(owner).digest('hex').slice(0, 16)
  const keys = Array.from({ length: count }, (_, at) => `blob_${place}${at.toString(16).padStart(16, '0')}`).filter(
    isBlobKey,
  )
  await stage.world.database.db.run(sql`
    insert into blob_deletions (blob_key, share_owner, created_at)
    select key, ${owner}, ${stage.now()} from unnest(${keys}::text[]) as keys (key)`)
  return keys
}

test('a process that stops ends the deletions in progress and begins no further one', async () => {
  const keys = await queue(450)
  const stopping = new AbortController()
  let deleted = 0
  const discards = await deleteBy(async () => {
    deleted += 1
    stopping.abort()
  }, stopping.signal)
  expect([deleted, discards]).toEqual([10, 0])
  expect(await deleteWithout(() => false)).toHaveLength(keys.length - deleted)
})

test('a blob whose deletion always fails blocks no other, and is retried forever with a growing back-off', async () => {
  const keys = await queue(450)
  const stuck = keys[0]
  const requested = await deleteWithout((key) => key === stuck)
  expect(requested.sort()).toEqual([...keys].sort())
  expect(await stage.store()).toMatchObject({ deletions: 1 })

  const tries = []
  for (let minute = 1; minute <= 20; minute++) {
    stage.pass(minuteMs)
    if ((await deleteWithout(() => true)).length > 0) tries.push(minute)
  }
  expect(tries).toEqual([1, 3, 7, 15])
  stage.pass(60 * minuteMs)
  expect(await deleteWithout(() => false)).toEqual([stuck])
  expect(await stage.store()).toMatchObject({ deletions: 0 })
})

test('the blobs of an owner that has thousands delay those of no other', async () => {
  const many = await queue(2_000, 'org_1')
  stage.pass(minuteMs)
  const few = [...(await queue(1, 'org_2')), ...(await queue(3, 'org_3'))]
  const requested = await deleteWithout(() => false)
  expect(requested).toHaveLength(many.length + few.length)
  expect(requested.slice(0, 10)).toEqual(expect.arrayContaining(few))
})

test('each blob that is queued belongs to the owner of its vault', async () => {
  const [vault, other] = [await stage.aVault('pro'), await stage.aVault('pro')]
  const { id } = (await vault.send()).body
  await stage.call(vault.org, 'DELETE', `/vaults/${vault.vaultId}/files/${id}`)
  await other.send()
  await stage.call(other.org, 'DELETE', `/vaults/${other.vaultId}`)
  await stage.deleteContents()
  const rows = await stage.world.database.db.many(
    z.object({ shareOwner: z.string() }),
    sql`select share_owner from blob_deletions`,
  )
  expect(rows.map(({ shareOwner }) => shareOwner).sort()).toEqual([vault.org.id, other.org.id].sort())
  await stage.sweep()
})

test('an unavailable store is not called for every blob of a long queue, and all are deleted when it is back', async () => {
  const keys = await queue(300)
  expect((await deleteWithout(() => true)).length).toBe(20)
  expect(await stage.store()).toMatchObject({ deletions: 300 })
  stage.pass(minuteMs)
  expect((await deleteWithout(() => false)).sort()).toEqual([...keys].sort())
  expect(await stage.store()).toMatchObject({ deletions: 0 })
})

test('blobs are deleted ten at once, so that a slow storage is faster than the deletions of one account', async () => {
  const keys = await queue(40)
  let [running, most] = [0, 0]
  await deleteBy(async () => {
    running += 1
    most = Math.max(most, running)
    await new Promise((resolve) => setImmediate(resolve))
    running -= 1
  })
  expect([keys.length, most]).toEqual([40, 10])
  expect(await stage.store()).toMatchObject({ deletions: 0 })
})

import type { BlobKey } from '../../../files/index.ts'
import { instantOf } from '../../../platform/clock.ts'
import type { Deps } from '../../../platform/ctx.ts'
import { type Recurring, retryDelayMs } from '../../../platform/job.ts'
import { forgetDeletions, listDeletions, postponeDeletion, queueStaleUploads, type WaitingDeletion } from './store.ts'

/** How long an upload may last. Whoever takes longer finds at its end that it was given up. */
const uploadMsMax = 3_600_000
const batchMax = 200
/** So many failures one after another mean that the store is away; the rest is left for the next round. */
const failuresInARowMax = 20
/** When a blob that could not be deleted is tried again. It is tried for ever: somebody's bytes are in it. */
const retry = { attemptsMax: Number.POSITIVE_INFINITY, delayMsFirst: 60_000, delayMsMax: 3_600_000 }

/**
 * Deletes the bytes that no file names: those whose rows were taken away, those of uploads that were refused, broke off or died
 * with their process, and what had come of a content that never became whole. Each step can end anywhere and begin again, by
 * any number of processes at once: a blob is deleted before it is forgotten, and deleting one that is gone changes nothing.
 */
export const sweepFiles: Recurring = {
  name: 'vaults.sweep-files',
  everyMs: 30_000,
  run: sweepOnce,
}

type Sweeping = Pick<Deps, 'db' | 'blobs' | 'clock' | 'log'>

async function sweepOnce(deps: Sweeping): Promise<void> {
  const { db, blobs, clock } = deps
  const before = instantOf(clock.now().getTime() - uploadMsMax)
  await queueStaleUploads(db, before, clock.now())
  while ((await deleteBatch(deps)) === 'more');
  await blobs.discardPartial(before)
}

/** Deletes what is due, one by one: a blob that cannot be deleted is put off, longer each time, and the next one is taken. */
async function deleteBatch(deps: Sweeping): Promise<'more' | 'done'> {
  const due = await listDeletions(deps.db, deps.clock.now(), batchMax)
  const deleted: BlobKey[] = []
  let failuresInARow = 0
  for (const deletion of due) {
    if (failuresInARow === failuresInARowMax) break
    const isDeleted = await deleteOne(deps, deletion)
    failuresInARow = isDeleted ? 0 : failuresInARow + 1
    if (isDeleted) deleted.push(deletion.blobKey)
  }
  await forgetDeletions(deps.db, deleted)
  return due.length === batchMax && failuresInARow < failuresInARowMax ? 'more' : 'done'
}

async function deleteOne(
  { db, blobs, clock, log }: Sweeping,
  { blobKey, attempts }: WaitingDeletion,
): Promise<boolean> {
  try {
    await blobs.delete(blobKey)
    return true
  } catch (error) {
    log.error({ err: error, blobKey, attempts: attempts + 1 }, 'a blob could not be deleted; it is tried again later')
    await postponeDeletion(db, blobKey, instantOf(clock.now().getTime() + retryDelayMs(retry, attempts + 1)))
    return false
  }
}

import type { BlobKey } from '../../../files/index.ts'
import { instantOf } from '../../../platform/clock.ts'
import type { Background } from '../../../platform/ctx.ts'
import { deletionsMax } from '../../../platform/db/delete-expired.ts'
import { type RecurringTask, repeatWhile, retryDelayMs } from '../../../platform/recurring-task.ts'
import type { Deps } from '../ports.ts'
import { uploadMsMax } from './reserve.ts'
import { forgetDeletions, listDeletions, postponeDeletion, queueStaleUploads, type WaitingDeletion } from './store.ts'

const batchMax = 200
/** Deletions of the storage at once: one takes 10 to 50 ms, and an account may delete 200 files a second. */
const atOnce = 10
/** This many failures in a row mean that the store is unavailable; the rest waits for the next run. */
const failuresInARowMax = 20
/** Retries of a failed deletion. They never stop, because the blob is a customer's data. */
const retry = { attemptsMax: Number.POSITIVE_INFINITY, delayMsFirst: 60_000, delayMsMax: 3_600_000 }

/**
 * Deletes the bytes that no file refers to: those of deleted rows, of uploads that were refused, interrupted or died with their
 * process, and incomplete contents. Each step can be interrupted and repeated, by any number of processes at once: a blob is
 * deleted before it leaves the queue, and deleting a missing blob changes nothing.
 */
export const deleteUnreferencedFiles: RecurringTask<Deps> = {
  name: 'vaults.sweep-files',
  everyMs: 30_000,
  run: deleteUnreferenced,
}

type Deleting = Pick<Deps & Background, 'db' | 'blobs' | 'clock' | 'deletionCursors' | 'log' | 'stopping'>

async function deleteUnreferenced(deps: Deleting): Promise<void> {
  const { db, blobs, clock } = deps
  const before = instantOf(clock.now().getTime() - uploadMsMax)
  await repeatWhile(deps, async () => (await queueStaleUploads(db, { before, now: clock.now() })) === deletionsMax)
  await repeatWhile(deps, async () => (await deleteBatch(deps)) === 'more')
  if (deps.stopping?.aborted !== true) await blobs.discardPartial(before, deps.stopping)
}

/**
 * Deletes what is due, ten at once, in shares of owners. A blob that cannot be deleted is postponed with a growing back-off, and the next one follows.
 */
async function deleteBatch(deps: Deleting): Promise<'more' | 'done'> {
  const wanted = { now: deps.clock.now(), most: batchMax, cursors: deps.deletionCursors }
  const due = await deps.db.tx((tx) => listDeletions(tx, wanted), { readsInOrder: true })
  const deleted: BlobKey[] = []
  let failuresInARow = 0
  const mayContinue = () => failuresInARow < failuresInARowMax && deps.stopping?.aborted !== true
  for (let at = 0; at < due.length && mayContinue(); at += atOnce) {
    const part = due.slice(at, at + atOnce)
    const results = await Promise.all(part.map((deletion) => deleteOne(deps, deletion)))
    for (const isDeleted of results) failuresInARow = isDeleted ? 0 : failuresInARow + 1
    deleted.push(...part.filter((_, index) => results[index] === true).map(({ blobKey }) => blobKey))
  }
  await forgetDeletions(deps.db, deleted)
  return due.length === batchMax && mayContinue() ? 'more' : 'done'
}

async function deleteOne(
  { db, blobs, clock, log }: Deleting,
  { blobKey, attempts }: WaitingDeletion,
): Promise<boolean> {
  try {
    await blobs.delete(blobKey)
    return true
  } catch (error) {
    log.error({ err: error, blobKey, attempts: attempts + 1 }, 'a blob could not be deleted; retrying later')
    await postponeDeletion(db, blobKey, instantOf(clock.now().getTime() + retryDelayMs(retry, attempts + 1)))
    return false
  }
}

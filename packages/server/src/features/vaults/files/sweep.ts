import { instantOf } from '../../../platform/clock.ts'
import type { Deps } from '../../../platform/ctx.ts'
import type { Recurring } from '../../../platform/job.ts'
import { forgetDeletions, listDeletions, queueStaleUploads } from './store.ts'

/** How long an upload may last. Whoever takes longer finds at its end that it was given up. */
const uploadMsMax = 3_600_000
const batchMax = 200

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

async function sweepOnce({ db, blobs, clock }: Pick<Deps, 'db' | 'blobs' | 'clock'>): Promise<void> {
  const before = instantOf(clock.now().getTime() - uploadMsMax)
  await queueStaleUploads(db, before, clock.now())
  for (;;) {
    const blobKeys = await listDeletions(db, batchMax)
    for (const blobKey of blobKeys) await blobs.delete(blobKey)
    await forgetDeletions(db, blobKeys)
    if (blobKeys.length < batchMax) break
  }
  await blobs.discardPartial(before)
}

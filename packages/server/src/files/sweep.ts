import type { BlobKey, BlobStore } from './port.ts'

/** Number of removed items. */
export interface Swept {
  readonly partial: number
  readonly orphans: number
}

/** Returns those of the keys that rows reference. */
export type FindKept = (keys: readonly BlobKey[]) => Promise<ReadonlySet<BlobKey>>

/**
 * Removes unreferenced content and unfinished uploads. `before` must be older than the longest upload plus its transaction, because content is
 * stored before its row commits. `findKept` must cover every environment that shares this store, since all other content is removed. Repeated or
 * concurrent runs are harmless.
 */
export async function sweepBlobs(blobs: BlobStore, before: Date, findKept: FindKept): Promise<Swept> {
  const partial = await blobs.discardPartial(before)
  let orphans = 0
  for await (const keys of blobs.list(before)) {
    const kept = await findKept(keys)
    for (const key of keys) {
      if (kept.has(key)) continue
      await blobs.delete(key)
      orphans += 1
    }
  }
  return { partial, orphans }
}

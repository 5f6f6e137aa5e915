import type { BlobKey, BlobStore } from './port.ts'

/** What a sweep removed. */
export interface Swept {
  readonly partial: number
  readonly orphans: number
}

/** Which of these keys are in use, asked of the table that names them. */
export type FindKept = (keys: readonly BlobKey[]) => Promise<ReadonlySet<BlobKey>>

/**
 * Removes what no row names and what was never finished. `before` must lie further back than the longest upload and the
 * transaction after it may last: a content is stored before its row commits, and a younger one is no orphan yet. `findKept` must
 * see every row of every environment that shares this store, since whatever it leaves out is gone. Running it again, or twice at
 * once, removes nothing more.
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

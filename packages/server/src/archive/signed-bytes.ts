import { instantOf } from '../platform/clock.ts'
import type { Db } from '../platform/db/db.ts'
import { deletionsMax } from '../platform/db/delete-expired.ts'
import type { RecurringTask } from '../platform/recurring-task.ts'
import { passAgain, passNext, signedTables } from './signed-bytes-store.ts'

const dayMs = 86_400_000
/** How long signed bytes stay after their payment ended, or their transaction became final: far longer than any reorganization or repeat. */
const keptMs = 7 * dayMs
/** Most batches of a table in one run, so that a backlog of years leaves the database to others in between. */
const batchesMax = 600

/**
 * Drops the signatures and call data of payments, relays and transactions that ended long ago. Two runs at once are harmless: each batch is a
 * transaction under the lock of its walk, which commits with the rows that it passed.
 */
export const expireSignedBytes: RecurringTask = {
  name: 'archive.drop-signed-bytes',
  everyMs: 600_000,
  run: ({ db, clock }) => dropSignedBytes(db, clock.now()),
}

/** Drops what nothing needs any more at that time. Each statement changes at most `deletionsMax` rows. */
export async function dropSignedBytes(db: Db, now: Date): Promise<void> {
  const bound = instantOf(now.getTime() - keptMs)
  const retryAt = instantOf(now.getTime() + dayMs)
  for (const table of signedTables) {
    for (let count = 0; count < batchesMax; count++)
      if ((await passNext(db, table, { bound, retryAt })) < deletionsMax) break
    for (let count = 0; count < batchesMax; count++)
      if ((await passAgain(db, table, bound, { now, retryAt })) < deletionsMax) break
  }
}

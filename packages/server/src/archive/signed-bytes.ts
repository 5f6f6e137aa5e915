import { instantOf } from '../platform/clock.ts'
import type { Db } from '../platform/db/db.ts'
import { deletionsMax, type Sweep } from '../platform/db/delete-expired.ts'
import { type RecurringTask, repeatWhile } from '../platform/recurring-task.ts'
import { passAgain, passNext, signedTables } from './signed-bytes-store.ts'

const dayMs = 86_400_000
/**
 * Milliseconds for which signed bytes stay after their payment ended, or their transaction became final: far longer than any reorganization or
 * repeat.
 */
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
  run: ({ db, clock, stopping }) => dropSignedBytes({ db, stopping }, clock.now()),
}

/** Drops what nothing needs any more at that time. Each statement changes at most `deletionsMax` rows; none begins once the process stops. */
export async function dropSignedBytes(sweep: Sweep<Db>, now: Date): Promise<void> {
  const { db } = sweep
  const bound = instantOf(now.getTime() - keptMs)
  const retryAt = instantOf(now.getTime() + dayMs)
  const isMore = (passed: number): boolean => passed >= deletionsMax
  for (const table of signedTables) {
    await repeatWhile(sweep, async () => isMore(await passNext(db, table, { bound, retryAt })), batchesMax)
    await repeatWhile(sweep, async () => isMore(await passAgain(db, table, bound, { now, retryAt })), batchesMax)
  }
}

import { isRefusedData, type Queryable, type Sql } from '../../platform/db/db.ts'
import type { Relays } from './port.ts'
import { insertRelays, insertWatched } from './queue-store.ts'
import { markReopened, markWithdrawn } from './store.ts'

/** The queue as other features use it; it needs only the caller's database. */
export const relays: Relays = {
  enqueue: insertRelays,
  enqueueEach,
  watch: insertWatched,
  async withdraw(tx, purpose, subjectId) {
    return (await markWithdrawn(tx, purpose, subjectId)) === 1
  },
  reopen: (tx, purpose, subjectId) => markReopened(tx, 'waiting', { purpose, subjectId }),
  watchAgain: (tx, purpose, subjectId) => markReopened(tx, 'watched', { purpose, subjectId }),
}

async function enqueueEach<T>(
  db: Queryable,
  purpose: string,
  items: readonly T[],
  sourceOf: (items: readonly T[]) => Sql,
): Promise<readonly (Error | undefined)[]> {
  if (items.length === 0) return []
  try {
    await insertRelays(db, purpose, sourceOf(items))
    return items.map(() => undefined)
  } catch (error) {
    if (items.length > 1 && isRefusedData(error))
      return (await Promise.all(items.map((item) => enqueueEach(db, purpose, [item], sourceOf)))).flat()
    return items.map(() => (error instanceof Error ? error : new Error(String(error))))
  }
}

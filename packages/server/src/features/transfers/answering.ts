import { batchByDb } from '../../platform/db/batch.ts'
import { type Db, isDeadlock } from '../../platform/db/db.ts'
import { takeAnswered } from './outcome-store.ts'
import type { TransferId, TransferRow } from './store.ts'

/**
 * Returns the current state of a transfer for the response to its caller, and stores that state with the transfer, so that a different end
 * is reported by an event. Concurrent callers share a transaction. If it deadlocks with another transaction, each transfer is retried by
 * itself, since a transfer in progress must not be reported as failed.
 */
export const answeredState = batchByDb<TransferId, TransferRow>({ itemsMax: 64, batchesMax: 2 }, reportStates)

async function reportStates(db: Db, transferIds: readonly TransferId[]): Promise<readonly TransferRow[]> {
  try {
    return await reportBatch(db, transferIds)
  } catch (error) {
    if (transferIds.length === 1 || !isDeadlock(error)) throw error
    return (await Promise.all(transferIds.map((transferId) => reportBatch(db, [transferId])))).flat()
  }
}

async function reportBatch(db: Db, transferIds: readonly TransferId[]): Promise<TransferRow[]> {
  const byId = new Map((await takeAnswered(db, transferIds)).map((row) => [row.id, row]))
  return transferIds.map((transferId) => {
    const row = byId.get(transferId)
    if (row === undefined) throw new Error('a response for a transfer that does not exist')
    return row
  })
}

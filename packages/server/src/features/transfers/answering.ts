import { batch } from '../../platform/db/batch.ts'
import { type Db, isDeadlock } from '../../platform/db/db.ts'
import { takeAnswered } from './outcome-store.ts'
import type { TransferPorts } from './ports.ts'
import type { TransferId, TransferRow } from './store.ts'

/**
 * Creates `answeredState`. If the shared transaction deadlocks with another one, each transfer is retried by itself: the caller of a transfer
 * in progress must not get an error.
 */
export function createAnsweredState(db: Db): TransferPorts['answeredState'] {
  return batch<TransferId, TransferRow>({ itemsMax: 64, batchesMax: 2 }, (transferIds) => reportStates(db, transferIds))
}

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

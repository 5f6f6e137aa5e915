import { type Db, isDeadlock } from '../../platform/db/db.ts'
import { gatherByDb } from '../../platform/db/gather.ts'
import { takeAnswered } from './outcome-store.ts'
import type { TransferId, TransferRow } from './store.ts'

/**
 * The state of a transfer as its caller is told it now, kept with the transfer, so that another end is told by an event. Callers who are
 * answered at the same time share a transaction; of two that wait for each other's transfers the one that is ended asks for each by itself, since
 * a caller whose transfer is under way must not be told that it failed.
 */
export const answeredState = gatherByDb<TransferId, TransferRow>({ itemsMax: 64, roundsMax: 2 }, tell)

async function tell(db: Db, transferIds: readonly TransferId[]): Promise<readonly TransferRow[]> {
  try {
    return await tellTogether(db, transferIds)
  } catch (error) {
    if (transferIds.length === 1 || !isDeadlock(error)) throw error
    return (await Promise.all(transferIds.map((transferId) => tellTogether(db, [transferId])))).flat()
  }
}

async function tellTogether(db: Db, transferIds: readonly TransferId[]): Promise<TransferRow[]> {
  const byId = new Map((await takeAnswered(db, transferIds)).map((row) => [row.id, row]))
  return transferIds.map((transferId) => {
    const row = byId.get(transferId)
    if (row === undefined) throw new Error('an answer about a transfer that there is not')
    return row
  })
}

import type { Db } from '../../platform/db/db.ts'
import { bindOperations } from '../../platform/operation.ts'
import { createByOwner } from '../../platform/work/by-owner.ts'
import { bindTasks } from '../../platform/work/runner.ts'
import { gaslessTransfers } from './gasless/relay.ts'
import { transferHandler } from './handler.ts'
import { legacyWithdrawOperations } from './legacy/routes.ts'
import { watchedPayments } from './paying/pay.ts'
import { payingOperations } from './paying/routes.ts'
import type { Deps, TransferPorts } from './ports.ts'
import { createRecordTransfer } from './record.ts'
import { transferOperations } from './routes.ts'
import { transferRecurring } from './tasks.ts'
import { createReportState, TransferWaiters } from './transfer.ts'

export { transferHandler } from './handler.ts'
export { legacyWithdrawOperations } from './legacy/routes.ts'
export { sellerLimits } from './paying/fetch.ts'
export { payingOperations } from './paying/routes.ts'
export { gasCostOf, planTransfer } from './plan.ts'
export type { Deps as TransferDeps, TransferPlan } from './ports.ts'
export { transferOperations, transferPlanErrors } from './routes.ts'
export type { NewTransfer } from './schema.ts'
export { findHashes, findTransfer, findTransfers, type TransferId } from './store.ts'
export { transferRecurring } from './tasks.ts'
export { attachTransfer, prepareTransfer, storeTransfer } from './transfer.ts'
export { type Ended, endUnknown, type Finding, listUnknown } from './unknown.ts'
export { listTransferEnds, type TransferOutcome } from './unknown-store.ts'

/** State that the feature keeps in memory for the requests of one process. */
export function createTransferPorts(db: Db): TransferPorts {
  return {
    recordTransfer: createRecordTransfer(db),
    outcomeWaiters: new TransferWaiters(db),
    reportState: createReportState(db),
    followedTransfers: createByOwner({ slots: 16, atOnce: 2 }),
    followedCursors: new Map(),
    awaitedCursors: new Map(),
    unreportedPlace: { after: undefined },
    revokedCursors: new Map(),
    begunTransfers: createByOwner({ slots: 16, atOnce: 2 }),
  }
}

/** Builds the feature. */
export function createTransfers(needs: Omit<Deps, keyof TransferPorts>) {
  const deps: Deps = { ...needs, ...createTransferPorts(needs.db) }
  return {
    deps,
    operations: bindOperations(deps, [...transferOperations, ...payingOperations, ...legacyWithdrawOperations]),
    loops: bindTasks(deps, transferRecurring),
    laneHandlers: [transferHandler(deps)],
    relays: [gaslessTransfers(deps), watchedPayments(deps)],
  }
}

import type { OffRampsPort } from '../../partners/offramp/port.ts'
import type { Call, Deps as PlatformDeps } from '../../platform/ctx.ts'
import { type DeclareOperation, operationFor } from '../../platform/operation.ts'
import type { ByOwner } from '../../platform/work/by-owner.ts'
import type { DueCursors } from '../plans/index.ts'
import type { TransferDeps } from '../transfers/index.ts'

/** State that the feature keeps in memory for the work of one process. `createWithdrawalPorts` makes it. */
export interface WithdrawalPorts {
  /** For the withdrawals in progress, by source: a network until the tokens are sent, then a partner in one environment. */
  readonly followedWithdrawals: {
    readonly limits: ByOwner
    readonly cursors: DueCursors
  }
}

/** Dependencies of the feature withdrawals. */
export interface Deps extends PlatformDeps, TransferDeps, OffRampsPort, WithdrawalPorts {}

/** Context of one call. */
export interface Ctx extends Deps, Call {}

export const operation: DeclareOperation<Deps> = operationFor()

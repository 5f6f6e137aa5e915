import { networkByName } from '@purser/protocol'
import type { ChainPorts } from '../../chain/port.ts'
import type { ScreeningPort } from '../../partners/screening/port.ts'
import type { Deps as PlatformDeps } from '../../platform/ctx.ts'
import { type RecurringTask, repeatWhile } from '../../platform/recurring-task.ts'
import { bindTasks } from '../../platform/work/runner.ts'
import type { DepositBook } from './deposit-book.ts'
import type { ReadFunds } from './snapshot.ts'
import { deleteEnded, listEndedNetworks, markReservationsEnded } from './store.ts'

export type { AmountOnHold, HoldQuestion } from './deposit-book.ts'
export {
  areCovered,
  contendedBy,
  type FundsClaim,
  fundErrors,
  lockCovered,
  nativeCoinOf,
  needOf,
  payGas,
  refuseShort,
  retryOnContention,
  topUpOf,
  waitForDeposits,
  withFunds,
} from './needs.ts'
export { createReadFunds, type Funds, type Snapshot, type Spendable } from './snapshot.ts'
export {
  assignReservations,
  authorizeReservation,
  type Coin,
  dropReservations,
  endAllowances,
  endReservations,
  insertReservations,
  keepAllowances,
  lockOwners,
  markAllowancesGone,
  type NewReservation,
  type WalletAsset,
  type Want,
} from './store.ts'
export { exceededByOpen, markAuthorizationsUsed, markAuthorizationUnused } from './unused-store.ts'

/** Dependencies of the feature funds. */
export interface FundDeps extends PlatformDeps, ChainPorts, ScreeningPort {
  readonly deposits: DepositBook
  readonly readFunds: ReadFunds
}

/** Longer than nodes that agree on a block fall behind what they reported before, and than networks without a tag of finality are reorganized. */
const keptSeconds = 600
const deletedMax = 10_000

/**
 * Deletes reservations that no balance needs any more. Idempotent: rows are marked once and deleted once. While no
 * majority of the nodes agrees on a block, none is marked.
 */
export const pruneReservations: RecurringTask<FundDeps> = {
  name: 'funds.prune-reservations',
  everyMs: 30_000,
  async run(ctx) {
    for (const name of await listEndedNetworks(ctx.db)) {
      const network = networkByName(name)
      if (network === undefined || !ctx.chains.configured.includes(network)) continue
      const newest = await ctx.chains
        .on(network)
        .blocks.newestBlock()
        .catch((error: unknown) => ctx.log.warn({ err: error, network: name }, 'reservations could not be pruned'))
      if (newest !== undefined) await markReservationsEnded(ctx.db, name, newest.number)
    }
    const limits = { seconds: keptSeconds, most: deletedMax }
    await repeatWhile(ctx, async () => (await deleteEnded(ctx.db, limits)) === deletedMax)
  },
}

/** Builds the feature. */
export function createFunds(deps: FundDeps) {
  return { loops: bindTasks(deps, [pruneReservations]) }
}

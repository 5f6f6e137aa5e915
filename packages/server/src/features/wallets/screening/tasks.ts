import type { NetworkName } from '@purser/protocol'
import type { Background } from '../../../platform/ctx.ts'
import { type RecurringTask, repeatWhile } from '../../../platform/recurring-task.ts'
import { lockNetwork } from '../deposits/cursor-store.ts'
import type { Deps } from '../ports.ts'
import { isAnyDepositDue, listDueDeposits } from './deposit-store.ts'
import { screenDeposits } from './deposits.ts'
import { followList } from './follow.ts'
import { reportHolds } from './holds.ts'
import { screenWallets } from './screen.ts'
import { isAnyWalletDue, listDueWallets } from './store.ts'
import { continueTraces } from './taint.ts'
import { isAnyTrace, listTracedNetworks } from './taint-trace-store.ts'

/** Most batches of one run; the next run continues. */
const batchesMax = 50

/** Makes addresses that a new list concerns due. Idempotent: the comparison is stored together with its result. */
const followSanctions: RecurringTask<Deps> = {
  name: 'wallets.follow-sanctions',
  everyMs: 5_000,
  run: followList,
}

/**
 * Screens the wallets that are due, new ones immediately. The due time is in the row, so another process continues if one dies, and
 * screening a wallet twice is harmless.
 */
const screenDueWallets: RecurringTask<Deps> = {
  name: 'wallets.screen-due',
  everyMs: 500,
  isDue: ({ clock }) => isAnyWalletDue(clock.now()),
  async run(ctx) {
    const screenBatch = async () => {
      const due = await listDueWallets(ctx.db, ctx.clock.now(), ctx.screening.addressesMax)
      await screenWallets(ctx, due)
      return due.length >= ctx.screening.addressesMax
    }
    await repeatWhile(ctx, screenBatch, batchesMax)
  },
}

/**
 * Refreshes the sanctions list once a day over all processes, and warns while live deposits are on hold. The time of the last attempt is in
 * the database.
 */
const refreshSanctions: RecurringTask<Deps> = {
  name: 'wallets.refresh-sanctions',
  everyMs: 300_000,
  async run(ctx) {
    await ctx.screening.refreshIfDue()
    await reportHolds(ctx)
  },
}

/** Screens the senders of deposits that are due: a new deposit within seconds of its booking. */
const screenDueDeposits: RecurringTask<Deps> = {
  name: 'wallets.screen-due-deposits',
  everyMs: 2_000,
  isDue: ({ clock }) => isAnyDepositDue(clock.now()),
  async run(ctx) {
    const screenBatch = async () => {
      const due = await listDueDeposits(ctx.db, ctx.clock.now(), ctx.screening.addressesMax)
      await screenDeposits(ctx, due)
      return due.length >= ctx.screening.addressesMax
    }
    await repeatWhile(ctx, screenBatch, batchesMax)
  },
}

/**
 * Continues traces of flagged money that were too long for one transaction. A step takes what is left in the transaction that traces it, so a process that
 * dies loses no step, and two at once run one after the other under the lock of the network.
 */
const continueTracing: RecurringTask<Deps> = {
  name: 'wallets.continue-traces',
  everyMs: 500,
  isDue: isAnyTrace,
  async run(ctx) {
    const networks = await listTracedNetworks(ctx.db)
    await Promise.all(networks.map((network) => traceAllOn(ctx, network)))
  },
}

/** A failure leaves the trace to the next run, and stops no other network's. */
async function traceAllOn(
  ctx: Pick<Deps & Background, 'db' | 'log' | 'stopping'>,
  network: NetworkName,
): Promise<void> {
  try {
    await repeatWhile(ctx, () => traceOn(ctx, network))
  } catch (error) {
    ctx.log.warn({ err: error, network }, 'a trace of flagged money failed; retrying')
  }
}

function traceOn({ db }: Pick<Deps, 'db'>, network: NetworkName): Promise<boolean> {
  return db.tx(async (tx) => {
    await lockNetwork(tx, network)
    return continueTraces(tx, network)
  })
}

export const screeningRecurring: readonly RecurringTask<Deps>[] = [
  refreshSanctions,
  followSanctions,
  screenDueWallets,
  screenDueDeposits,
  continueTracing,
]

import type { NetworkName } from '@purser/protocol'
import type { Background, Environment } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { type RecurringTask, repeatWhile } from '../../../platform/recurring-task.ts'
import type { DueChecks } from '../../plans/index.ts'
import { lockNetwork } from '../deposits/cursor-store.ts'
import type { Deps } from '../ports.ts'
import { isAnyDepositDue, listDueDeposits } from './deposit-store.ts'
import { screenDeposits } from './deposits.ts'
import { followList } from './follow.ts'
import { reportHolds } from './holds.ts'
import { screenWallets, type WorkCtx } from './screen.ts'
import { isAnyWalletDue, listDueWallets } from './store.ts'
import { continueTraces } from './taint.ts'
import { isAnyTrace, listTracedNetworks } from './taint-trace-store.ts'

/** Most batches of each environment in one run; the next run continues. */
const batchesMax = 50

/** Screens a batch of each environment in turn, while there are more: what is live waits for at most one batch of test rows. */
async function screenInTurns<Due>(
  ctx: WorkCtx & Background,
  cursors: DueChecks['cursors'],
  list: (tx: Tx, environment: Environment, due: DueBatch) => Promise<readonly Due[]>,
  screen: (ctx: WorkCtx, due: readonly Due[]) => Promise<void>,
): Promise<void> {
  const { clock, db, screening } = ctx
  const most = screening.addressesMax
  const screenBatch = async (environment: Environment): Promise<boolean> => {
    const due = await db.tx((tx) => list(tx, environment, { now: clock.now(), most, cursors }), { readsInOrder: true })
    await screen(ctx, due)
    return due.length >= most
  }
  const screenBoth = async (): Promise<boolean> => {
    const isMoreLive = await screenBatch('live')
    return (await screenBatch('test')) || isMoreLive
  }
  await repeatWhile(ctx, screenBoth, batchesMax)
}

type DueBatch = Pick<DueChecks, 'most' | 'cursors'> & { readonly now: Date }

/** Makes addresses that a new list concerns due. Idempotent: the place of each step is stored together with its result. */
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
    await screenInTurns(ctx, ctx.screeningCursors.wallets, listDueWallets, screenWallets)
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
    await screenInTurns(ctx, ctx.screeningCursors.deposits, listDueDeposits, screenDeposits)
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

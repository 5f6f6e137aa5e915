import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { type Job, job, type Recurring } from '../../../platform/job.ts'
import { listDueDeposits } from './deposit-store.ts'
import { screenDeposits } from './deposits.ts'
import { followList } from './follow.ts'
import { reportHolds } from './holds.ts'
import { screenWallets } from './screen.ts'
import { findWalletToScreen, listDueWallets } from './store.ts'

/** Screens a wallet as soon as it is registered. Running it again screens again; the daily work has it too, should this one die. */
export const screenNewWallet: Job = job({
  name: 'wallets.screen-new',
  payload: z.strictObject({ organisationId: id('org'), environment: z.enum(['test', 'live']), walletId: id('byw') }),
  retry: { attemptsMax: 5, delayMsFirst: 1_000, delayMsMax: 60_000 },
  async run(ctx, { walletId, ...tenant }) {
    const wallet = await findWalletToScreen(ctx.db, tenant, walletId)
    if (wallet !== undefined) await screenWallets(ctx, [wallet])
  },
})

/** Most wallets of one run; the next run goes on. */
const batchesMax = 50

/**
 * Screens the wallets whose time has come. When each is due is in its row, so another process goes on where one died, and a wallet that is
 * screened twice is only asked about twice.
 */
const screenDueWallets: Recurring = {
  name: 'wallets.screen-due',
  everyMs: 5_000,
  async run(ctx) {
    await followList(ctx)
    for (let batch = 0; batch < batchesMax; batch++) {
      const due = await listDueWallets(ctx.db, ctx.clock.now(), ctx.screening.addressesMax)
      await screenWallets(ctx, due)
      if (due.length < ctx.screening.addressesMax) break
    }
  },
}

/**
 * Refreshes the sanctions list, once a day of all processes, and warns while live deposits are on hold. The time of the last try is in the database.
 */
const refreshSanctions: Recurring = {
  name: 'wallets.refresh-sanctions',
  everyMs: 300_000,
  async run(ctx) {
    await ctx.screening.refreshIfDue()
    await reportHolds(ctx)
  },
}

/** Screens the senders of deposits whose time has come, as wallets are: a new deposit within seconds of being seen. */
const screenDueDeposits: Recurring = {
  name: 'wallets.screen-due-deposits',
  everyMs: 2_000,
  async run(ctx) {
    for (let batch = 0; batch < batchesMax; batch++) {
      const due = await listDueDeposits(ctx.db, ctx.clock.now(), ctx.screening.addressesMax)
      await screenDeposits(ctx, due)
      if (due.length < ctx.screening.addressesMax) break
    }
  },
}

export const screeningJobs: readonly Job[] = [screenNewWallet]
export const screeningRecurring: readonly Recurring[] = [refreshSanctions, screenDueWallets, screenDueDeposits]

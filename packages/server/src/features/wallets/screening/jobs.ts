import type { Recurring } from '../../../platform/job.ts'
import { listDueDeposits } from './deposit-store.ts'
import { screenDeposits } from './deposits.ts'
import { followList } from './follow.ts'
import { reportHolds } from './holds.ts'
import { screenWallets } from './screen.ts'
import { listDueWallets } from './store.ts'

/** Most wallets of one run; the next run goes on. */
const batchesMax = 50

/** Makes due whom a new list concerns. What was compared is stored with what is due, so that twice is once. */
const followSanctions: Recurring = {
  name: 'wallets.follow-sanctions',
  everyMs: 5_000,
  run: followList,
}

/**
 * Screens the wallets whose time has come, which for a new one is at once. When each is due is in its row, so another process goes on where one
 * died, and a wallet that is screened twice is only looked up twice.
 */
const screenDueWallets: Recurring = {
  name: 'wallets.screen-due',
  everyMs: 500,
  async run(ctx) {
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

export const screeningRecurring: readonly Recurring[] = [
  refreshSanctions,
  followSanctions,
  screenDueWallets,
  screenDueDeposits,
]

import { instantOf } from '../../platform/clock.ts'
import type { Recurring, RecurringByNetwork } from '../../platform/job.ts'
import { applyTransferDecisions } from './approved.ts'
import { finalizeTransfers, publishOutcomes } from './ending.ts'
import { followPartners } from './follow.ts'
import { signTransfers } from './gasless/relay.ts'
import { listUnanswered } from './outcome-store.ts'
import { applyPaymentDecisions, endUnusedPayments } from './paying/pay.ts'
import type { Deps } from './ports.ts'
import { expireQuotes } from './quotes.ts'
import { refillChildren } from './refill.ts'
import { revokeApprovals } from './revoke.ts'
import { lockTransfer } from './store.ts'

const unansweredMs = 120_000

/**
 * Publishes the end of transfers whose caller never got a response, because the process died. Runs later after the end than any request
 * waits. Idempotent: each is published once, under its row's lock.
 */
const publishUnanswered: Recurring<Deps> = {
  name: 'transfers.publish-unanswered',
  everyMs: 30_000,
  async run(ctx) {
    const before = instantOf(ctx.clock.now().getTime() - unansweredMs)
    for (const transferId of await listUnanswered(ctx.db, before)) {
      await ctx.db.tx(async (tx) => {
        const transfer = await lockTransfer(tx, transferId)
        if (transfer.answered === null) await publishOutcomes(ctx, tx, [transfer])
      })
    }
  },
}

export const transferRecurring: readonly (Recurring<Deps> | RecurringByNetwork<Deps>)[] = [
  applyTransferDecisions,
  applyPaymentDecisions,
  endUnusedPayments,
  publishUnanswered,
  finalizeTransfers,
  followPartners,
  signTransfers,
  refillChildren,
  revokeApprovals,
  expireQuotes,
]

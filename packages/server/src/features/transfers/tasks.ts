import { instantOf } from '../../platform/clock.ts'
import type { RecurringTask, RecurringTaskByNetwork } from '../../platform/recurring-task.ts'
import { applyTransferDecisions } from './begin-waiting.ts'
import { finalizeTransfers, publishOutcomes } from './ending.ts'
import { followPartners } from './follow.ts'
import { signTransfers } from './gasless/relay.ts'
import { listUnreported } from './outcome-store.ts'
import { applyPaymentDecisions, endUnusedPayments } from './paying/approved.ts'
import type { Deps } from './ports.ts'
import { expireQuotes } from './quotes.ts'
import { refillChildren } from './refill.ts'
import { revokeApprovals } from './revoke.ts'
import { lockTransfer } from './store.ts'

const unreportedMs = 120_000

/**
 * Publishes the end of transfers whose caller never got a response, because the process died. Runs later after the end than any request
 * waits. Idempotent: each is published once, under its row's lock.
 */
const publishUnreported: RecurringTask<Deps> = {
  name: 'transfers.publish-unreported',
  everyMs: 30_000,
  async run(ctx) {
    const before = instantOf(ctx.clock.now().getTime() - unreportedMs)
    for (const transferId of await listUnreported(ctx.db, before)) {
      const publish = ctx.db.tx(async (tx) => {
        const transfer = await lockTransfer(tx, transferId)
        if (transfer.reportedState === null) await publishOutcomes(ctx, tx, [transfer])
      })
      // One that cannot be published delays no other.
      await publish.catch((error: unknown) =>
        ctx.log.error({ err: error, transferId }, 'the end of a transfer could not be published'),
      )
    }
  },
}

export const transferRecurring: readonly (RecurringTask<Deps> | RecurringTaskByNetwork<Deps>)[] = [
  applyTransferDecisions,
  applyPaymentDecisions,
  endUnusedPayments,
  publishUnreported,
  finalizeTransfers,
  followPartners,
  signTransfers,
  refillChildren,
  revokeApprovals,
  expireQuotes,
]

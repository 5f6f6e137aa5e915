import { instantOf } from '../../platform/clock.ts'
import { type RecurringTask, type RecurringTaskByNetwork, repeatWhile } from '../../platform/recurring-task.ts'
import { applyTransferDecisions } from './begin-waiting.ts'
import { finalizeTransfers, publishOutcomes } from './ending.ts'
import { followPartners } from './follow.ts'
import { signTransfers } from './gasless/relay.ts'
import { applyPaymentDecisions, endUnusedPayments } from './paying/approved.ts'
import type { Deps } from './ports.ts'
import { expireQuotes } from './quotes.ts'
import { refillChildren } from './refill.ts'
import { revokeApprovals } from './revoke.ts'
import { lockTransfer } from './store.ts'
import { listUnreported } from './unreported-store.ts'

const unreportedMs = 120_000
const pageRows = 100
/** Most pages of one run; the next run continues. */
const pagesMax = 20

/**
 * Publishes the end of transfers whose caller never got a response, because the process died. Runs later after the end than any request
 * waits. Idempotent: each is published once, under its row's lock.
 */
const publishUnreported: RecurringTask<Deps> = {
  name: 'transfers.publish-unreported',
  everyMs: 30_000,
  async run(ctx) {
    const before = instantOf(ctx.clock.now().getTime() - unreportedMs)
    const list = { before, place: ctx.unreportedPlace, most: pageRows }
    const publishPage = async () => {
      const transferIds = await listUnreported(ctx.db, list)
      for (const transferId of transferIds) {
        const publish = ctx.db.tx(async (tx) => {
          const transfer = await lockTransfer(tx, transferId)
          if (transfer.reportedState === null) await publishOutcomes(ctx, tx, [transfer])
        })
        // One that cannot be published delays no other, and is tried again when all others were.
        await publish.catch((error: unknown) =>
          ctx.log.error({ err: error, transferId }, 'the end of a transfer could not be published'),
        )
      }
      return transferIds.length === pageRows
    }
    await repeatWhile(ctx, publishPage, pagesMax)
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

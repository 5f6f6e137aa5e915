import type { RouteStatus } from '../../partners/routing/port.ts'
import { instantOf } from '../../platform/clock.ts'
import type { Ctx } from '../../platform/ctx.ts'
import type { Queryable, Tx } from '../../platform/db/db.ts'
import type { Recurring } from '../../platform/job.ts'
import { forTenant } from '../../platform/work/runner.ts'
import { releasePolicy } from '../wallets/index.ts'
import { askStatus } from './follow.ts'
import { listOwed, lockOwed, markArrivedLate, markRefundedLate, setRefundLookAt } from './refund-store.ts'
import { setPartnerStatus } from './route-store.ts'
import type { TransferRow } from './store.ts'

type Work = Omit<Ctx, 'tenant'>

/**
 * Goes on asking partners for refunds that they owed when their transfers ended. What comes is recorded beside the end, which stays as it
 * was told. Harmless twice: each is written once, under its transfer's lock.
 */
export const watchOwedRefunds: Recurring = {
  name: 'transfers.watch-owed-refunds',
  everyMs: 5_000,
  async run(ctx) {
    for (const transfer of await listOwed(ctx.db, ctx.clock.now())) {
      try {
        await look(ctx, transfer)
      } catch (error) {
        ctx.log.warn({ err: error, transferId: transfer.id }, 'a refund could not be asked for; it will be again')
        await putOff(ctx, ctx.db, transfer)
      }
    }
  },
}

const lookMs = 3_600_000
/** From its end on, how long a transfer's refund is asked for. */
const askedMsMax = 30 * 24 * 3_600_000

/** To the next hour, until it was asked for long enough. */
async function putOff(ctx: Work, db: Queryable, { id: transferId, partner, endedAt }: TransferRow): Promise<void> {
  const now = ctx.clock.now().getTime()
  const isGivenUp = endedAt === null || now - endedAt.getTime() >= askedMsMax
  if (isGivenUp) ctx.log.error({ transferId, partner }, 'a refund never came; it is asked for no more')
  await setRefundLookAt(db, transferId, isGivenUp ? null : instantOf(now + lookMs))
}

async function look(ctx: Work, transfer: TransferRow): Promise<void> {
  const status = await askStatus(ctx, transfer)
  await ctx.db.tx(async (tx) => {
    if (!(await lockOwed(tx, transfer.id))) return
    await setPartnerStatus(tx, transfer.id, status.partnerStatus)
    if (status.state === 'completed') return arrived(ctx, tx, transfer, status)
    if (status.state === 'failed' && status.refund === 'done') return refunded(ctx, tx, transfer, status)
    await putOff(ctx, tx, transfer)
  })
}

async function refunded(
  ctx: Work,
  tx: Tx,
  transfer: TransferRow,
  { refundTxHash }: Extract<RouteStatus, { state: 'failed' }>,
): Promise<void> {
  const now = ctx.clock.now()
  await markRefundedLate(tx, transfer.id, { hash: refundTxHash, now })
  await releasePolicy(tx, transfer, transfer.id, now)
  ctx.log.warn({ transferId: transfer.id, refundTxHash }, 'a refund came after its transfer had ended')
  const details = refundTxHash === undefined ? {} : { refundTxHash }
  await forTenant(ctx, transfer).audit(tx, { action: 'transfers.refund', target: transfer.id, details })
}

async function arrived(
  ctx: Work,
  tx: Tx,
  transfer: TransferRow,
  { destinationTxHash }: Extract<RouteStatus, { state: 'completed' }>,
): Promise<void> {
  await markArrivedLate(tx, transfer.id, destinationTxHash)
  ctx.log.error({ transferId: transfer.id, destinationTxHash }, 'a partner delivered after its transfer had failed')
  const details = destinationTxHash === undefined ? {} : { destinationTxHash }
  await forTenant(ctx, transfer).audit(tx, { action: 'transfers.arrive-late', target: transfer.id, details })
}

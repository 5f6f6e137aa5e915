import { formatAmount, type Hex } from '@purser/protocol'
import { instantOf } from '../../platform/clock.ts'
import type { ActingCtx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { publishEvent } from '../../platform/events.ts'
import { forTenant } from '../../platform/work/runner.ts'
import { type EndingCtx, end, endAll } from './ending.ts'
import { markArrived } from './partner-store.ts'
import type { Ctx } from './ports.ts'
import { lockTransfer, type TransferId, type TransferRow } from './store.ts'
import {
  lockUnknown,
  markOverdue,
  markRefunded,
  markRefundOverdue,
  markUndelivered,
  markUnknown,
} from './unknown-store.ts'

export { listUnknown } from './unknown-store.ts'

/**
 * Marks a transfer as unknown: another transaction used its nonce, and its call is not found on chain. That proves nothing: a restored
 * database may have lost the transaction that moved the money. The caller sees `pending`, the reservations stay, and the operator ends it
 * (`purser admin end-transfer`).
 */
export async function leaveUnknown(
  ctx: Pick<Ctx, 'clock' | 'log'>,
  tx: Tx,
  { id, fromNetwork }: TransferRow,
): Promise<void> {
  await markUnknown(tx, id, ctx.clock.now())
  const facts = { transferId: id, network: fromNetwork }
  ctx.log.error(facts, 'it is unknown whether the money of a transfer moved; see purser admin unknown-transfers')
}

/**
 * The operator's finding about a call whose nonce another transaction used: the transaction that moved the money, or
 * that it did not move and never will.
 */
type CallFinding = { readonly movedBy: Hex } | 'not-moved'
/**
 * The operator's finding about money that was sent to a partner: the transaction that delivered it, the one that
 * refunded it, or that it is lost.
 */
type MoneyFinding = { readonly deliveredBy: Hex } | { readonly refundedBy: Hex } | 'not-received'
export type Finding = CallFinding | MoneyFinding

/** `other`: the finding does not fit the reason why the transfer is unknown. */
export type Ended = 'ended' | 'not-unknown' | 'other'

/** Ends an unknown transfer with the operator's finding. */
export async function endUnknown(ctx: EndingCtx, transferId: TransferId, finding: Finding): Promise<Ended> {
  return ctx.db.tx(async (tx) => {
    const doubt = await lockUnknown(tx, transferId)
    if (doubt === undefined) return 'not-unknown'
    if (isOfCall(finding) !== (doubt === 'nonce')) return 'other'
    if (isOfCall(finding)) await endCall(ctx, tx, transferId, finding)
    else await endMoney(ctx, tx, transferId, finding)
    return 'ended'
  })
}

function isOfCall(finding: Finding): finding is CallFinding {
  return finding === 'not-moved' || (typeof finding === 'object' && 'movedBy' in finding)
}

async function endCall(ctx: EndingCtx, tx: Tx, transferId: TransferId, finding: CallFinding): Promise<void> {
  if (finding === 'not-moved') return end(ctx, tx, transferId, 'nonce-used-elsewhere')
  const seen = { transferId, hash: finding.movedBy, rawReceived: undefined }
  await endAll(ctx, tx, [{ transferId, fault: undefined, seen }])
}

async function endMoney(ctx: EndingCtx, tx: Tx, transferId: TransferId, finding: MoneyFinding): Promise<void> {
  const now = ctx.clock.now()
  if (finding === 'not-received') return end(ctx, tx, transferId, finding)
  if ('deliveredBy' in finding) {
    const arrival = { rawReceived: undefined, receivedToken: undefined, destinationTxHash: finding.deliveredBy, now }
    await markArrived(tx, transferId, arrival)
    return end(ctx, tx, transferId, undefined)
  }
  const transfer = await lockTransfer(tx, transferId)
  await markRefunded(tx, transferId, { hash: finding.refundedBy, now })
  if (transfer.refundOverdueEventId !== null) await publishRefunded(ctx, tx, transfer, finding.refundedBy)
  await end(ctx, tx, transferId, 'refunded')
}

const hourMs = 3_600_000
/** Partners deliver within minutes, and the slowest within hours. */
const deliveryMsMax = 24 * hourMs
/** A day longer than a refund may take until it is reported as overdue. */
const failingMsMax = 96 * hourMs

/**
 * Reports a transfer whose money left a day ago and did not arrive, whatever its partner says and whether it responds at all: to its owner by an
 * event, and to the operator as unknown. It stays open, and ends when the chain shows the delivery or the refund. Reports it once.
 */
export async function reportOverdue(
  ctx: ActingCtx & Pick<Ctx, 'db' | 'log'>,
  { id, leftAt }: TransferRow,
): Promise<void> {
  const now = ctx.clock.now()
  const leftBefore = instantOf(now.getTime() - deliveryMsMax)
  if (leftAt === null || leftAt >= leftBefore) return
  await ctx.db.tx(async (tx) => {
    const transfer = await lockTransfer(tx, id)
    const limits = { now, leftBefore, failingBefore: instantOf(now.getTime() - failingMsMax) }
    if (!(await markUndelivered(tx, id, limits))) return
    const { txHash, partner } = transfer
    const own = forTenant(ctx, transfer)
    const payload = { ...about(transfer), txHash, leftAt: leftAt.toISOString() }
    await publishEvent(own, tx, 'transfer.delivery_overdue', payload)
    await own.audit(tx, {
      action: 'transfers.delivery-overdue',
      target: id,
      details: txHash === null ? {} : { txHash },
    })
    const facts = { transferId: id, partner, txHash, leftAt }
    ctx.log.error(facts, 'the delivery of a transfer is overdue; see purser admin unknown-transfers')
  })
}

/** The facts of a transfer that the events of its overdue money have. */
function about(transfer: TransferRow) {
  const { id: transactionId, walletId, route, rawAmount, decimals, fromToken: token, fromChain: chain } = transfer
  return { transactionId, walletId, route, amount: formatAmount(rawAmount, decimals), token, chain }
}

/** Reports once that a partner failed and has not refunded the money in time. The transfer stays open; the caller has locked its row. */
export async function publishRefundOverdue(
  ctx: ActingCtx,
  tx: Tx,
  transfer: TransferRow,
  failingSince: Date,
): Promise<void> {
  const own = forTenant(ctx, transfer)
  const { txHash } = transfer
  const payload = { ...about(transfer), txHash, failingSince: failingSince.toISOString() }
  await markOverdue(tx, transfer.id, ctx.clock.now())
  await markRefundOverdue(tx, transfer.id, await publishEvent(own, tx, 'transfer.refund_overdue', payload))
  const details = txHash === null ? {} : { txHash }
  await own.audit(tx, { action: 'transfers.refund-overdue', target: transfer.id, details })
}

/** Reports the refund of a transfer that was reported as overdue; the transfer ends in the same transaction. */
export async function publishRefunded(
  ctx: EndingCtx,
  tx: Tx,
  transfer: TransferRow,
  refundTxHash: string | undefined,
): Promise<void> {
  const payload = { ...about(transfer), refundTxHash: refundTxHash ?? null, refundedAt: ctx.clock.now().toISOString() }
  await publishEvent({ ...ctx, tenant: transfer }, tx, 'transfer.refunded', payload)
}

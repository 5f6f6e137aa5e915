import type { Hex } from '@purser/protocol'
import type { Tx } from '../../platform/db/db.ts'
import { type EndingCtx, end, endAll } from './ending.ts'
import type { Ctx } from './ports.ts'
import { publishRefunded } from './refund-events.ts'
import { markRefunded } from './refund-store.ts'
import { markArrived } from './route-store.ts'
import { lockTransfer, type TransferId, type TransferRow } from './store.ts'
import { lockUnknown, markUnknown } from './unknown-store.ts'

export { listUnknown } from './unknown-store.ts'

/**
 * Marks a transfer as unknown: another transaction used its nonce, and its call is not found on chain. That proves nothing: a restored
 * database may have lost the transaction that moved the money. The caller sees `pending`, the reservations stay, and the operator ends it
 * (`purser admin end-transfer`).
 */
export async function leaveUnknown(ctx: Omit<Ctx, 'tenant'>, tx: Tx, { id, fromNetwork }: TransferRow): Promise<void> {
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

function endCall(ctx: EndingCtx, tx: Tx, transferId: TransferId, finding: CallFinding): Promise<void> {
  if (finding === 'not-moved') return end(ctx, tx, transferId, 'nonce-used-elsewhere')
  const seen = { transferId, hash: finding.movedBy, rawReceived: undefined }
  return endAll(ctx, tx, [{ transferId, fault: undefined, seen }])
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

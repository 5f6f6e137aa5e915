import type { Hex } from '@purser/protocol'
import type { Ctx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { type EndingCtx, endAll } from './ending.ts'
import type { TransferId, TransferRow } from './store.ts'
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
  ctx.metrics
    .counter('purser_transfers_unknown_total', 'Transfers that became unknown since the start.', ['network'])
    .inc({ network: fromNetwork })
}

/** The operator's finding: the transaction that moved its money, or that nothing moved and nothing will. */
export type Finding = { readonly movedBy: Hex } | 'not-moved'

/** Ends an unknown transfer with the operator's finding; false if it is not unknown. */
export async function endUnknown(ctx: EndingCtx, transferId: TransferId, finding: Finding): Promise<boolean> {
  return ctx.db.tx(async (tx) => {
    if ((await lockUnknown(tx, transferId)) === undefined) return false
    const end =
      finding === 'not-moved'
        ? { transferId, fault: 'nonce-used-elsewhere' }
        : { transferId, fault: undefined, seen: { transferId, hash: finding.movedBy, rawReceived: undefined } }
    await endAll(ctx, tx, [end])
    return true
  })
}

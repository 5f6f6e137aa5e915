import type { Tx } from '../../../platform/db/db.ts'
import type { Ctx } from '../ports.ts'

export interface Flag {
  readonly walletId: string
  /** The screened address: the wallet's own, or the sender of a deposit. */
  readonly address: string
  /** The deposit; null if the wallet itself was screened. */
  readonly transactionId: string | null
  readonly isFlagged: boolean
  readonly reason: string
}

/** Publishes the event that a wallet or a deposit was flagged, or that its flag was removed. */
export async function publishFlag(
  ctx: Pick<Ctx, 'clock' | 'publish'>,
  tx: Tx,
  { isFlagged, reason, ...subject }: Flag,
): Promise<void> {
  const at = ctx.clock.now().toISOString()
  if (isFlagged) await ctx.publish(tx, 'wallet.flagged', { ...subject, reason, flaggedAt: at })
  else await ctx.publish(tx, 'wallet.cleared', { ...subject, clearedAt: at })
}

import { instantOf } from '../../../platform/clock.ts'
import { markPendingDepositsDue, markSendersDue } from './deposit-store.ts'
import type { WorkCtx } from './screen.ts'
import { lockFollow, markAddressesDue, markPendingDue, upsertFollow } from './store.ts'

/** Older money may be long spent, and freezing its amount would lock somebody else's. */
const freezesBackMs = 30 * 86_400_000

/**
 * Compares the list that holds with the one that wallets were last compared with, and makes due whom the difference concerns; and, when
 * the list was found to hold until later, all of whom nobody could say anything. What was compared is written in the same
 * transaction, so a process that dies in between leaves it to be done.
 */
export async function followList(ctx: WorkCtx): Promise<void> {
  const list = await ctx.screening.list()
  const known = await ctx.db.tx((tx) => lockFollow(tx))
  if (known?.listVersion === list.version && known.listAsOf.getTime() === list.asOf.getTime()) return
  const changed =
    known === undefined || known.listVersion === list.version
      ? []
      : await ctx.screening.difference(known.listVersion, list.version)
  await ctx.db.tx(async (tx) => {
    const still = await lockFollow(tx)
    if (still?.listVersion !== known?.listVersion) return
    const now = ctx.clock.now()
    if (changed.length > 0) {
      await markAddressesDue(tx, changed, now)
      await markSendersDue(tx, changed, { now, since: instantOf(now.getTime() - freezesBackMs) })
    }
    await markPendingDue(tx, now)
    await markPendingDepositsDue(tx, now)
    await upsertFollow(tx, { listVersion: list.version, listAsOf: list.asOf })
  })
}

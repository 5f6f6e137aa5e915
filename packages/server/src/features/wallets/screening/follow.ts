import { instantOf } from '../../../platform/clock.ts'
import { markDepositsDue } from './deposit-store.ts'
import type { WorkCtx } from './screen.ts'
import { lockFollow, markWalletsDue, readFollow, upsertFollow } from './store.ts'

/** Older money may be long spent, and freezing its amount would lock other money. */
const freezesBackMs = 30 * 86_400_000

/**
 * Compares the current list with the one that wallets were last compared with, and makes the addresses that differ due; if the list was
 * renewed, all pending addresses too. The comparison is stored in the same transaction, so that a crash in between leaves it to be
 * repeated.
 */
export async function followList(ctx: Pick<WorkCtx, 'clock' | 'db' | 'screening'>): Promise<void> {
  const list = await ctx.screening.list()
  const known = await readFollow(ctx.db)
  if (known?.listVersion === list.version && known.listAsOf.getTime() === list.asOf.getTime()) return
  const changed =
    known === undefined || known.listVersion === list.version
      ? []
      : await ctx.screening.difference(known.listVersion, list.version)
  await ctx.db.tx(async (tx) => {
    await lockFollow(tx)
    const still = await readFollow(tx)
    if (still?.listVersion !== known?.listVersion) return
    const now = ctx.clock.now()
    await markWalletsDue(tx, changed, now)
    await markDepositsDue(tx, { senders: changed, now, since: instantOf(now.getTime() - freezesBackMs) })
    await upsertFollow(tx, { listVersion: list.version, listAsOf: list.asOf })
  })
}

import type { Ctx, Tenant } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { endWatches, insertWatches, type Watch } from './watch-store.ts'

type WatchCtx = Pick<Ctx, 'clock'> & { readonly tenant: Tenant }

/** Addresses of one call: what a caller may ask for at once. */
const watchesMax = 1_000

/**
 * Has the address watched on every network of the wallet's environment, from the caller's commit on: a transfer in a block that comes after
 * it is seen. To be called in the transaction that makes the wallet; calling again changes nothing.
 */
export function watchAddress(ctx: WatchCtx, tx: Tx, watch: Watch): Promise<void> {
  return watchAddresses(ctx, tx, [watch])
}

/** The same for up to 1,000 addresses in one statement. */
export async function watchAddresses(ctx: WatchCtx, tx: Tx, watches: readonly Watch[]): Promise<void> {
  if (watches.length > watchesMax) throw new Error(`at most ${watchesMax} addresses are watched at once`)
  if (watches.length > 0) await insertWatches(tx, ctx.tenant, watches, ctx.clock.now())
}

/**
 * Stops watching for the wallet: transfers in blocks above this one of its network are not its own any more. What was seen until then goes its
 * way.
 */
export function unwatchAddress(
  ctx: WatchCtx,
  tx: Tx,
  { walletId, headBlock }: { readonly walletId: string; readonly headBlock: bigint | undefined },
): Promise<void> {
  return endWatches(tx, ctx.tenant, walletId, { at: ctx.clock.now(), block: headBlock })
}

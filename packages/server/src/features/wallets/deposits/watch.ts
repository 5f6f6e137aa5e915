import type { Ctx, Tenant } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { endWatches, insertWatches, type Watch } from './watch-store.ts'

type WatchCtx = Pick<Ctx, 'clock'> & { readonly tenant: Tenant }

/** Most addresses of one call: as many as a caller may request at once. */
const watchesMax = 1_000

/**
 * Watches the address on every network of the wallet's environment, from the caller's commit on: transfers in later blocks are found. Call
 * it in the transaction that creates the wallet. Idempotent.
 */
export function watchAddress(ctx: WatchCtx, tx: Tx, watch: Watch): Promise<void> {
  return watchAddresses(ctx, tx, [watch])
}

/** As `watchAddress`, for up to 1,000 addresses in one statement. */
export async function watchAddresses(ctx: WatchCtx, tx: Tx, watches: readonly Watch[]): Promise<void> {
  if (watches.length > watchesMax) throw new Error(`at most ${watchesMax} addresses are watched at once`)
  if (watches.length > 0) await insertWatches(tx, ctx.tenant, watches, ctx.clock.now())
}

/**
 * Stops watching for the wallet: transfers in blocks above this one of its network do not belong to it. Transfers that were already found
 * are processed as usual.
 */
export function unwatchAddress(
  ctx: WatchCtx,
  tx: Tx,
  { walletId, headBlock }: { readonly walletId: string; readonly headBlock: bigint | undefined },
): Promise<void> {
  return endWatches(tx, ctx.tenant, walletId, { at: ctx.clock.now(), block: headBlock })
}

import type { Network } from '@purser/protocol'
import type { Head } from '../../../chain/facts.ts'
import type { Tenant } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import type { Ctx } from '../ports.ts'
import { blockMsOf } from './booking.ts'
import { endWatches, insertWatches, mergeEndedWatches, type Watch } from './watch-store.ts'

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

/** As `watchAddress`, for a wallet of the customer: ended watches of its address that the organisation registered before are merged. */
export async function watchByoAddress(ctx: WatchCtx, tx: Tx, watch: Watch): Promise<void> {
  await watchAddress(ctx, tx, watch)
  await mergeEndedWatches(tx, ctx.tenant, watch)
}

/** As `watchAddress`, for up to 1,000 addresses in one statement. */
export async function watchAddresses(ctx: WatchCtx, tx: Tx, watches: readonly Watch[]): Promise<void> {
  if (watches.length > watchesMax) throw new Error(`at most ${watchesMax} addresses are watched at once`)
  if (watches.length > 0) await insertWatches(tx, ctx.tenant, watches, ctx.clock.now())
}

/** The newest block of a network, as a majority of the nodes reported it. */
export type WatchHead = Pick<Head, 'number' | 'timestampSeconds'> & { readonly network: Network }

/**
 * Stops watching for the wallet: transfers in blocks after the deletion do not belong to it. `head` is the newest block of its network;
 * undefined if too few nodes responded. Transfers that were already found are processed as usual.
 */
export function unwatchAddress(
  ctx: WatchCtx,
  tx: Tx,
  { walletId, head }: { readonly walletId: string; readonly head: WatchHead | undefined },
): Promise<void> {
  const at = ctx.clock.now()
  const isNewest = head !== undefined && at.getTime() < Number(head.timestampSeconds) * 1_000 + blockMsOf(head.network)
  return endWatches(tx, ctx.tenant, walletId, { at, block: head?.number, isNewest })
}

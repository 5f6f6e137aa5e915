import type { Network } from '@purser/protocol'
import type { Ctx, Tenant } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { type HeldAmount, heldAmountOf, type SourceWallet, unscreenedSince } from '../wallets/index.ts'
import type { Coin } from './weigh.ts'

/** What screening keeps in a wallet of what it weighs, as it was then. */
export interface Held extends HeldAmount {
  /** What was seen after this instant waits for its sender; undefined where nothing waits. */
  readonly since: Date | undefined
}

interface Place {
  readonly source: SourceWallet
  readonly network: Network
  readonly coin: Coin
}

/**
 * What is held of the token now. Read before the balance: what comes in between counts as the wallet's own then, and `heldMore` sees
 * it; the other way round it would be missing from a balance that it is not in. Of the coin nothing is known to have come from anybody.
 */
export async function readHeld(ctx: Ctx, { source, network, coin }: Place): Promise<Held> {
  if (coin.address === undefined) return { frozen: 0n, unscreened: 0n, since: undefined }
  const since = await unscreenedSince(ctx)
  const asked = { network: network.name, token: coin.address, since }
  return { ...(await heldAmountOf(ctx.db, ctx.tenant, source.id, asked)), since }
}

/** How much more is held than when the wallet was weighed; less than nothing where senders were cleared. Asked under the wallet's lock. */
export async function heldMore(tx: Tx, tenant: Tenant, place: Place, before: Held): Promise<bigint> {
  const { source, network, coin } = place
  if (coin.address === undefined) return 0n
  const asked = { network: network.name, token: coin.address, since: before.since }
  const now = await heldAmountOf(tx, tenant, source.id, asked)
  return now.frozen + now.unscreened - before.frozen - before.unscreened
}

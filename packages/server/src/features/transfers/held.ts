import type { Network } from '@purser/protocol'
import type { Ctx, Tenant } from '../../platform/ctx.ts'
import type { Queryable, Tx } from '../../platform/db/db.ts'
import { type HeldAmount, heldAmounts, type SourceWallet, unscreenedSince } from '../wallets/index.ts'
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

/** A place, and whose it is. */
interface OwnPlace {
  readonly tenant: Tenant
  readonly place: Place
}

/**
 * What is held of the tokens now, in the order of the places. Read before the balances: what comes in between counts as the wallet's own
 * then, and `heldMore` sees it; the other way round it would be missing from a balance that it is not in. Of the coin nothing is known to have
 * come from anybody.
 */
export async function readHeld(
  ctx: Pick<Ctx, 'db' | 'clock' | 'screening'>,
  places: readonly OwnPlace[],
): Promise<Held[]> {
  const since = await unscreenedSince(ctx)
  const amounts = await amountsOf(
    ctx.db,
    places.map((one) => ({ ...one, since })),
  )
  return amounts.map((amount, index) => ({ ...amount, since: isCoin(places[index]?.place) ? undefined : since }))
}

/** A place, and what was held there when it was weighed. */
interface WeighedPlace extends OwnPlace {
  readonly before: Held
}

/** How much more is held than when the wallets were weighed; less than nothing where senders were cleared. Asked under the wallets' locks. */
export async function heldMore(tx: Tx, weighed: readonly WeighedPlace[]): Promise<bigint[]> {
  const amounts = await amountsOf(
    tx,
    weighed.map(({ before, ...one }) => ({ ...one, since: before.since })),
  )
  return weighed.map(({ before }, index) => {
    const now = amounts[index] ?? nothing
    return now.frozen + now.unscreened - before.frozen - before.unscreened
  })
}

const nothing: HeldAmount = { frozen: 0n, unscreened: 0n }

/** One statement for all of them; nothing is asked where all of them are of coins. */
async function amountsOf(
  db: Queryable,
  places: readonly (OwnPlace & { readonly since: Date | undefined })[],
): Promise<HeldAmount[]> {
  const questions = places.flatMap(({ tenant, place: { source, network, coin }, since }) => {
    if (coin.address === undefined) return []
    return [{ tenant, walletId: source.id, network: network.name, token: coin.address, since }]
  })
  const told = questions.length === 0 ? [] : [...(await heldAmounts(db, questions))]
  return places.map(({ place }) => (isCoin(place) ? nothing : (told.shift() ?? nothing)))
}

function isCoin(place: Place | undefined): boolean {
  return place?.coin.address === undefined
}

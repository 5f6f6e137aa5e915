import type { Network } from '@purser/protocol'
import type { Ctx, Tenant } from '../../platform/ctx.ts'
import type { Queryable, Tx } from '../../platform/db/db.ts'
import { type AmountOnHold, amountsOnHold, type SourceWallet } from '../wallets/index.ts'
import type { Coin } from './weigh.ts'

/** What screening keeps in a wallet of what it weighs, as it was then. */
export type Held = Pick<AmountOnHold, 'frozen' | 'unscreened'>

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
export function readHeld(ctx: Pick<Ctx, 'db'>, places: readonly OwnPlace[]): Promise<Held[]> {
  return amountsOf(ctx.db, places)
}

/** A place, and what was held there when it was weighed. */
interface WeighedPlace extends OwnPlace {
  readonly before: Held
}

/** How much more is held than when the wallets were weighed; less than nothing where senders were cleared. Asked under the wallets' locks. */
export async function heldMore(tx: Tx, weighed: readonly WeighedPlace[]): Promise<bigint[]> {
  const amounts = await amountsOf(tx, weighed)
  return weighed.map(({ before }, index) => {
    const now = amounts[index] ?? nothing
    return now.frozen + now.unscreened - before.frozen - before.unscreened
  })
}

const nothing: Held = { frozen: 0n, unscreened: 0n }

/** One statement for all of them; none where all of them are of coins. */
async function amountsOf(db: Queryable, places: readonly OwnPlace[]): Promise<Held[]> {
  const questions = places.flatMap(({ tenant, place: { source, network, coin } }) =>
    coin.address === undefined ? [] : [{ tenant, walletId: source.id, network: network.name, token: coin.address }],
  )
  const onHold = questions.length === 0 ? [] : [...(await amountsOnHold(db, questions))]
  return places.map(({ place }) => (place.coin.address === undefined ? nothing : (onHold.shift() ?? nothing)))
}

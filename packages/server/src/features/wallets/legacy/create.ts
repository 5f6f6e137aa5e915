import type { Ctx } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { Reply } from '../../../platform/operation.ts'
import { watchAddresses } from '../deposits/watch.ts'
import { type Derived, onNextAccount, walletOn } from '../managed/create.ts'
import { insertMasterWallet } from '../managed/store.ts'
import { type CoinPlace, coinsOf, placeOf } from './coins.ts'
import { shownLegacyWallet } from './legacy.ts'
import type { LegacyWallet, NewLegacyWallet } from './schema.ts'
import { findLegacyWallet, type LegacyWalletRow } from './store.ts'

/**
 * The tenant's legacy wallet: made where there is none, on the next account like any managed wallet, and answered with 200 where there
 * is one, whichever coin it was made for. It counts to no quota.
 */
export async function provideLegacyWallet(ctx: Ctx, { coin }: NewLegacyWallet): Promise<LegacyWallet | Reply> {
  const place = placeOf(coin, ctx.tenant.environment)
  const known = (await findLegacyWallet(ctx.db, ctx.tenant)) ?? (await makeUnlessThere(ctx, place))
  if (known !== undefined) return new Reply(200, shownLegacyWallet(ctx, known, coin))
  const made = await findLegacyWallet(ctx.db, ctx.tenant)
  if (made === undefined) throw new Error('a legacy wallet was made and is not there')
  return shownLegacyWallet(ctx, made, coin)
}

/** Thrown to roll back when another request made the wallet meanwhile, so that no account is skipped. */
class There extends Error {
  readonly wallet: LegacyWalletRow

  constructor(wallet: LegacyWalletRow) {
    super()
    this.wallet = wallet
  }
}

/** Makes it; or answers the one that another request, of whatever process, has made in the same instant. */
async function makeUnlessThere(ctx: Ctx, place: CoinPlace): Promise<LegacyWalletRow | undefined> {
  try {
    await onNextAccount(ctx, { insert: (tx, derived) => insertLegacy(ctx, tx, place, derived) })
    return undefined
  } catch (error) {
    if (error instanceof There) return error.wallet
    throw error
  }
}

/** The account that the caller took holds off every other that would make one, until the transaction ends. */
async function insertLegacy(ctx: Ctx, tx: Tx, { coin, chain, network }: CoinPlace, derived: Derived): Promise<true> {
  const known = await findLegacyWallet(tx, ctx.tenant)
  if (known !== undefined) throw new There(known)
  const here = coinsOf(ctx.tenant.environment).filter((place) => place.network.name === network.name)
  const supportedTokens = here.map(({ token }) => token.symbol)
  const wallet = { ...walletOn(ctx, { chain, supportedTokens }, derived), legacyCoin: coin }
  await insertMasterWallet(tx, ctx.tenant, wallet)
  await watchAddresses(ctx, tx, watchesOf(ctx, wallet))
  const { address, account } = wallet
  const details = { address, chain, network: network.name, account, coin }
  await ctx.audit(tx, { action: 'wallets.legacy.create', target: wallet.id, details })
  await ctx.idempotency?.commit(tx, wallet.id)
  return true
}

/** On the network of every coin, also of those that it was not asked for: the address is paid in any of them. */
function watchesOf(ctx: Ctx, { id: walletId, address }: Pick<LegacyWalletRow, 'id' | 'address'>) {
  const byNetwork = Map.groupBy(coinsOf(ctx.tenant.environment), ({ network }) => network.name)
  return [...byNetwork].map(([network, [first, ...others]]) => {
    if (first === undefined) throw new Error('a network of no coin')
    const supportedTokens = [first, ...others].map(({ token }) => token.symbol)
    return { walletId, address, chain: first.chain, network, supportedTokens }
  })
}

/** For a repeat of the request that made it and whose answer was never stored. */
export async function providedLegacyWallet(ctx: Ctx): Promise<LegacyWallet> {
  const made = await findLegacyWallet(ctx.db, ctx.tenant)
  if (made === undefined) throw new Error('a key is tied to a legacy wallet that is not there')
  return shownLegacyWallet(ctx, made, made.coin)
}

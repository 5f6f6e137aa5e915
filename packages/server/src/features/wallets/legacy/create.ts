import { formatAmount } from '@purser/protocol'
import type { Tx } from '../../../platform/db/db.ts'
import { type Page, Reply } from '../../../platform/operation.ts'
import type { TransactionQuery, WalletTransaction } from '../deposits/schema.ts'
import { pageOfTransactions } from '../deposits/transactions.ts'
import { watchAddresses } from '../deposits/watch.ts'
import { fail } from '../errors.ts'
import { type Derived, onNextAccount, walletOn } from '../managed/create.ts'
import { insertMasterWallet } from '../managed/store.ts'
import type { Ctx } from '../ports.ts'
import { type CoinToken, coinsOf, type LegacyCoin, placeOf } from './coins.ts'
import type { LegacyBalance, LegacyBalanceQuery, LegacyWallet, NewLegacyWallet } from './schema.ts'
import { findLegacyWallet, type LegacyWalletRow } from './store.ts'

/**
 * Returns the tenant's legacy wallet. If there is none it is created on the next account, like any managed wallet; if there is one the
 * status is 200, whichever coin it was created for. It does not count against a quota.
 */
export async function provideLegacyWallet(ctx: Ctx, { coin }: NewLegacyWallet): Promise<LegacyWallet | Reply> {
  const place = placeOf(coin, ctx.tenant.environment)
  const known = (await findLegacyWallet(ctx.db, ctx.tenant)) ?? (await createUnlessExists(ctx, place))
  if (known !== undefined) return new Reply(200, shownLegacyWallet(ctx, known, coin))
  const made = await findLegacyWallet(ctx.db, ctx.tenant)
  if (made === undefined) throw new Error('a legacy wallet was created but is not found')
  return shownLegacyWallet(ctx, made, coin)
}

/** Thrown to roll back if another request created the wallet concurrently, so that no account is skipped. */
class AlreadyExists extends Error {
  readonly wallet: LegacyWalletRow

  constructor(wallet: LegacyWalletRow) {
    super()
    this.wallet = wallet
  }
}

/** Creates it; or returns the one that another request, in any process, has just created. */
async function createUnlessExists(ctx: Ctx, place: CoinToken): Promise<LegacyWalletRow | undefined> {
  try {
    await onNextAccount(ctx, { insert: (tx, derived) => insertLegacy(ctx, tx, place, derived) })
    return undefined
  } catch (error) {
    if (error instanceof AlreadyExists) return error.wallet
    throw error
  }
}

/** Inserts it. The account that the caller took blocks other requests that would create one, until the transaction ends. */
async function insertLegacy(
  ctx: Pick<Ctx, 'audit' | 'clock' | 'deriveAddress' | 'idempotency' | 'random' | 'tenant'>,
  tx: Tx,
  { coin, chain, network }: CoinToken,
  derived: Derived,
): Promise<true> {
  const known = await findLegacyWallet(tx, ctx.tenant)
  if (known !== undefined) throw new AlreadyExists(known)
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

/** Watches on the network of every coin, since payments in any of them may arrive at the address. */
function watchesOf(ctx: Pick<Ctx, 'tenant'>, { id: walletId, address }: Pick<LegacyWalletRow, 'id' | 'address'>) {
  const byNetwork = Map.groupBy(coinsOf(ctx.tenant.environment), ({ network }) => network.name)
  return [...byNetwork].map(([network, [first, ...others]]) => {
    if (first === undefined) throw new Error('a network of no coin')
    const supportedTokens = [first, ...others].map(({ token }) => token.symbol)
    return { walletId, address, chain: first.chain, network, supportedTokens }
  })
}

/** For a repeat of the request that created it and whose response was never stored. */
export async function providedLegacyWallet(ctx: Pick<Ctx, 'db' | 'tenant'>): Promise<LegacyWallet> {
  const made = await findLegacyWallet(ctx.db, ctx.tenant)
  if (made === undefined) throw new Error('an Idempotency-Key refers to a legacy wallet that does not exist')
  return shownLegacyWallet(ctx, made, made.coin)
}

/** The tenant's legacy wallet, or 404 if there is none. */
export async function requireLegacyWallet(ctx: Pick<Ctx, 'db' | 'tenant'>): Promise<LegacyWalletRow> {
  const wallet = await findLegacyWallet(ctx.db, ctx.tenant)
  if (wallet === undefined) throw fail('wallet-not-found')
  return wallet
}

function shownLegacyWallet(ctx: Pick<Ctx, 'tenant'>, wallet: LegacyWalletRow, coin: LegacyCoin): LegacyWallet {
  const { id, address, createdAt } = wallet
  return { id, address, coin, chain: placeOf(coin, ctx.tenant.environment).chain, createdAt }
}

export async function getLegacyWallet(ctx: Pick<Ctx, 'db' | 'tenant'>): Promise<LegacyWallet> {
  const wallet = await requireLegacyWallet(ctx)
  return shownLegacyWallet(ctx, wallet, wallet.coin)
}

/** The wallet's balance of each coin, as of a block that is at most one block time old. */
export async function balanceOfLegacy(
  ctx: Pick<Ctx, 'db' | 'readHolding' | 'tenant'>,
  { coin }: LegacyBalanceQuery,
): Promise<LegacyBalance> {
  const { environment } = ctx.tenant
  const places = coin === undefined ? coinsOf(environment) : [placeOf(coin, environment)]
  const { id, address } = await requireLegacyWallet(ctx)
  return { id, address, balances: await Promise.all(places.map((place) => balanceAt(ctx, address, place))) }
}

async function balanceAt(
  ctx: Pick<Ctx, 'readHolding'>,
  address: LegacyWalletRow['address'],
  { coin, chain, network, token }: CoinToken,
) {
  const { tokens } = await ctx.readHolding(network, address)
  const raw = tokens[network.tokens.indexOf(token)]
  if (raw === undefined) throw new Error('a chain returned fewer tokens than were requested')
  const { symbol: tokenSymbol, decimals } = token
  return { coin, chain, tokenSymbol, formattedBalance: formatAmount(raw, decimals), rawBalance: raw.toString() }
}

export async function historyOfLegacy(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  query: TransactionQuery,
): Promise<Page<WalletTransaction>> {
  const { id } = await requireLegacyWallet(ctx)
  return pageOfTransactions(ctx, id, query)
}

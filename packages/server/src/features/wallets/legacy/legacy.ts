import { formatAmount } from '@purser/protocol'
import type { Page } from '../../../platform/operation.ts'
import type { TransactionQuery, WalletTransaction } from '../deposits/schema.ts'
import { pageOfTransactions } from '../deposits/transactions.ts'
import { fail } from '../errors.ts'
import type { Ctx } from '../ports.ts'
import { type CoinPlace, coinsOf, type LegacyCoin, placeOf } from './coins.ts'
import type { LegacyBalance, LegacyBalanceQuery, LegacyWallet } from './schema.ts'
import { findLegacyWallet, type LegacyWalletRow } from './store.ts'

/** The tenant's legacy wallet, or 404 if there is none. */
export async function requireLegacyWallet(ctx: Pick<Ctx, 'db' | 'tenant'>): Promise<LegacyWalletRow> {
  const wallet = await findLegacyWallet(ctx.db, ctx.tenant)
  if (wallet === undefined) throw fail('wallet-not-found')
  return wallet
}

export function shownLegacyWallet(ctx: Ctx, wallet: LegacyWalletRow, coin: LegacyCoin): LegacyWallet {
  const { id, address, createdAt } = wallet
  return { id, address, coin, chain: placeOf(coin, ctx.tenant.environment).chain, createdAt }
}

export async function getLegacyWallet(ctx: Ctx): Promise<LegacyWallet> {
  const wallet = await requireLegacyWallet(ctx)
  return shownLegacyWallet(ctx, wallet, wallet.coin)
}

/** The wallet's balance of each coin, as of a block that is at most one block time old. */
export async function balanceOfLegacy(ctx: Ctx, { coin }: LegacyBalanceQuery): Promise<LegacyBalance> {
  const { environment } = ctx.tenant
  const places = coin === undefined ? coinsOf(environment) : [placeOf(coin, environment)]
  const { id, address } = await requireLegacyWallet(ctx)
  return { id, address, balances: await Promise.all(places.map((place) => balanceAt(ctx, address, place))) }
}

async function balanceAt(ctx: Ctx, address: LegacyWalletRow['address'], { coin, chain, network, token }: CoinPlace) {
  const { tokens } = await ctx.readHolding(network, address)
  const raw = tokens[network.tokens.indexOf(token)]
  if (raw === undefined) throw new Error('a chain returned fewer tokens than were requested')
  const { symbol: tokenSymbol, decimals } = token
  return { coin, chain, tokenSymbol, formattedBalance: formatAmount(raw, decimals), rawBalance: raw.toString() }
}

export async function historyOfLegacy(ctx: Ctx, query: TransactionQuery): Promise<Page<WalletTransaction>> {
  const { id } = await requireLegacyWallet(ctx)
  return pageOfTransactions(ctx, id, query)
}

import { formatAmount, type Network, parseAmount, sameAddress } from '@purser/protocol'
import type { PartnerName, RouteChoice, RouteQuote, RouteRequest } from '../../partners/routing/port.ts'
import { failPlatform } from '../../platform/errors.ts'
import type { Coin } from '../funds/index.ts'
import type { SourceWallet } from '../wallets/index.ts'
import { fail } from './errors.ts'
import { requestQuote } from './partner.ts'
import type { Ctx } from './ports.ts'
import { findQuote, type QuoteId, type QuoteRow } from './quote-store.ts'
import type { NewTransfer } from './schema.ts'

/** Inputs of the least amount that must arrive. */
export interface FloorTerms {
  readonly request: NewTransfer
  readonly source: Pick<SourceWallet, 'id'>
  readonly network: Network
  readonly target: Network
  readonly coin: Coin
  readonly toCoin: Coin
  readonly rawAmount: bigint
  readonly choice: RouteChoice
}

/** Least share of the par value that must arrive if the caller names no minimum, in hundredths of a percent. */
const parBps = 9_800n

/**
 * The least amount that must arrive at the recipient, in the smallest unit of `toCoin`: the caller's minimum, else the quoted amount, else
 * 98 % of par. A coin and a token have no par, so the caller must name a minimum or a quote.
 */
export async function floorOf(ctx: Ctx, terms: FloorTerms): Promise<bigint> {
  const named = namedMinimum(terms)
  const { quoteId } = terms.request
  if (quoteId === undefined) {
    const floor = named ?? parFloor(terms)
    if (floor === undefined) throw fail('minimum-needed')
    return refuseDirectBelow(terms, floor)
  }
  const quoted = await quotedMinimum(ctx, quoteId, terms)
  return refuseDirectBelow(terms, named !== undefined && named > quoted ? named : quoted)
}

/** The floor for a quote: a caller may request one between a coin and a token without a minimum. */
export async function floorOfQuote(_ctx: Ctx, terms: FloorTerms): Promise<bigint> {
  return refuseDirectBelow(terms, namedMinimum(terms) ?? parFloor(terms) ?? 1n)
}

function refuseDirectBelow({ choice, rawAmount, toCoin }: FloorTerms, floor: bigint): bigint {
  if (choice.route === 'direct' && rawAmount < floor) throw priceTooLow(toCoin, rawAmount, floor)
  return floor
}

function namedMinimum({ request: { minToAmount }, toCoin: { decimals, symbol } }: FloorTerms): bigint | undefined {
  if (minToAmount === undefined) return undefined
  const raw = parseAmount(minToAmount, decimals)
  if (typeof raw === 'bigint' && raw > 0n) return raw
  const message = `must be a decimal amount of ${symbol} above zero with at most ${decimals} decimals`
  throw failPlatform('validation-error', { errors: [{ path: '/minToAmount', message }] })
}

/** Par value: every token of the registry is a dollar, and a coin is worth the same coin on another chain. Rounded up. */
function parFloor({ coin, toCoin, rawAmount }: FloorTerms): bigint | undefined {
  const areTokens = coin.address !== undefined && toCoin.address !== undefined
  const isOneCoin = coin.address === undefined && toCoin.address === undefined && coin.symbol === toCoin.symbol
  if (!areTokens && !isOneCoin) return undefined
  const unit = 10_000n * 10n ** BigInt(coin.decimals)
  return (rawAmount * parBps * 10n ** BigInt(toCoin.decimals) + unit - 1n) / unit
}

async function quotedMinimum(ctx: Ctx, quoteId: QuoteId, terms: FloorTerms): Promise<bigint> {
  const quote = await findQuote(ctx.db, ctx.tenant, quoteId)
  if (quote === undefined) throw fail('quote-not-found')
  if (quote.expiresAt <= ctx.clock.now()) throw fail('quote-expired')
  const differing = differingFields(quote, terms)
  if (differing.length === 0) return quote.rawOutMin
  const errors = differing.map((field) => ({ path: `/${field}`, message: 'is not what was quoted' }))
  throw fail('quote-mismatch', { errors })
}

function differingFields(quote: QuoteRow, { request, source, network, target, rawAmount, choice }: FloorTerms) {
  const matches = {
    fromWalletId: quote.walletId === source.id,
    fromChain: quote.fromNetwork === network.name,
    fromToken: quote.fromToken === request.fromToken,
    toAddress: sameAddress(quote.toAddress, request.toAddress),
    toChain: quote.toNetwork === target.name,
    toToken: quote.toToken === request.toToken,
    amount: quote.rawAmount === rawAmount,
    // The deployment's partners changed in the meantime.
    quoteId: quote.route === choice.route && quote.partner === partnerIn(choice),
  }
  return Object.entries(matches).flatMap(([field, isSame]) => (isSame ? [] : [field]))
}

/** Null for a direct transfer. */
function partnerIn(choice: RouteChoice): PartnerName | null {
  return choice.route === 'direct' ? null : choice.partner
}

/**
 * Requests a partner's quote whose call brings at least the floor. If the price suffices and only the slippage does not, requests again
 * with the slippage that the floor permits.
 */
export async function requestQuoteAbove(
  ctx: Ctx,
  name: PartnerName,
  request: RouteRequest,
  { floor, toCoin }: { readonly floor: bigint; readonly toCoin: Coin },
): Promise<RouteQuote> {
  const first = await requestQuote(ctx, name, request)
  if (first.rawOutMin >= floor) return first
  if (first.rawOut < floor) throw priceTooLow(toCoin, first.rawOut, floor)
  const slippageBps = Number(((first.rawOut - floor) * 10_000n) / first.rawOut)
  const second = await requestQuote(ctx, name, { ...request, slippageBps })
  if (second.rawOutMin < floor) throw priceTooLow(toCoin, second.rawOutMin, floor)
  return second
}

function priceTooLow({ symbol, decimals }: Coin, rawOffered: bigint, floor: bigint): Error {
  return fail('price-too-low', {
    token: symbol,
    offered: formatAmount(rawOffered, decimals),
    minimum: formatAmount(floor, decimals),
  })
}

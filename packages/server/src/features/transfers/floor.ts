import { formatAmount, type Network, parseAmount, sameAddress } from '@purser/protocol'
import type { PartnerName, RouteChoice, RouteQuote, RouteRequest } from '../../partners/routing/port.ts'
import type { Ctx } from '../../platform/ctx.ts'
import { failPlatform } from '../../platform/errors.ts'
import type { Coin } from '../funds/index.ts'
import type { SourceWallet } from '../wallets/index.ts'
import { fail } from './errors.ts'
import { askQuote } from './partner.ts'
import { findQuote, type QuoteId, type QuoteRow } from './quote-store.ts'
import type { NewTransfer } from './schema.ts'

/** What the least that must arrive depends on. */
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

/** Least of a dollar that must arrive for a dollar when the caller names no minimum, in hundredths of a percent. */
const parBps = 9_800n

/**
 * The least that must arrive at the recipient, in the smallest unit of `toCoin`: what the caller names, what the quote promised, and else
 * 98 % of par. Between a coin and a token there is no par, so that the caller must name a minimum or a quote.
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

/** The floor of a quote: a caller may ask what a coin brings before naming a minimum. */
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

/** Every token of the registry is a dollar; a coin is worth the same coin on another chain. Rounded up. */
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
    // The deployment's partners changed meanwhile.
    quoteId: quote.route === choice.route && quote.partner === partnerIn(choice),
  }
  return Object.entries(matches).flatMap(([field, isSame]) => (isSame ? [] : [field]))
}

/** Null for a direct transfer. */
export function partnerIn(choice: RouteChoice): PartnerName | null {
  return choice.route === 'direct' ? null : choice.partner
}

/**
 * A partner's quote whose own call brings at least the floor. Where the price is good enough and only the slippage leaves room for less,
 * the partner is asked again with as much slippage as the floor leaves.
 */
export async function askQuoteAbove(
  ctx: Ctx,
  name: PartnerName,
  request: RouteRequest,
  { floor, toCoin }: { readonly floor: bigint; readonly toCoin: Coin },
): Promise<RouteQuote> {
  const first = await askQuote(ctx, name, request)
  if (first.rawOutMin >= floor) return first
  if (first.rawOut < floor) throw priceTooLow(toCoin, first.rawOut, floor)
  const slippageBps = Number(((first.rawOut - floor) * 10_000n) / first.rawOut)
  const second = await askQuote(ctx, name, { ...request, slippageBps })
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

import {
  type Address,
  encodeTransfer,
  formatAmount,
  type Hex,
  type Network,
  sameAddress,
  tokenBySymbol,
  zeroAddress,
} from '@purser/protocol'
import { bytesOf, feeOfCalls, feeOfGas, plainFee, plainGas } from '../../chain/fees/costs.ts'
import type { Chain } from '../../chain/port.ts'
import type { RouteChoice, RouteEnd, RouteQuote, RouteRequest } from '../../partners/routing/port.ts'
import type { Tenant } from '../../platform/ctx.ts'
import { failPlatform } from '../../platform/errors.ts'
import { openAmount } from '../../platform/wire.ts'
import { networkFor, refuseServiceAddress } from '../chains/index.ts'
import {
  type Coin,
  type Funds,
  type FundsClaim,
  type NewReservation,
  nativeCoinOf,
  needOf,
  payGas,
  refuseShort,
  type WalletAsset,
  type Want,
  withFunds,
} from '../funds/index.ts'
import { type Gas, hasNoSource, type SourceWallet } from '../wallets/index.ts'
import { fail } from './errors.ts'
import { canBeGasless } from './gasless/begin.ts'
import { partnerSteps, priceTooLow, requestQuoteAbove, slippageBps } from './partner.ts'
import type { AllowanceKey } from './partner-store.ts'
import type { Ctx, PlannedStep, TransferPlan } from './ports.ts'
import { findQuote, type QuoteId, type QuoteRow } from './quote-store.ts'
import type { NewTransfer } from './schema.ts'

export interface PlanOptions {
  readonly readFloor?: typeof floorOf
  /** A subject that has already reserved the amounts that are planned now. */
  readonly except?: string
}

/**
 * Plans a transfer from the request, the wallet and the chain; throws the refusals. Stores nothing. `readFloor` returns the least amount
 * that must arrive.
 */
export async function planTransfer(
  ctx: Ctx,
  request: NewTransfer,
  { readFloor = floorOf, except }: PlanOptions = {},
): Promise<TransferPlan> {
  refuseOtherKind(request)
  const source = await ctx.findSource(ctx.db, ctx.tenant, request.fromWalletId)
  if (source === undefined) throw fail('wallet-not-found')
  if (source.retiredAt !== null) throw fail('wallet-retired')
  const fromChain = request.fromChain ?? source.chain
  const network = networkFor(fromChain, ctx.tenant.environment)
  const target = networkFor(request.toChain, ctx.tenant.environment)
  const coin = coinOf(network, request.fromToken, '/fromToken')
  const toCoin = coinOf(target, request.toToken, '/toToken')
  const rawAmount = openAmount(request.amount, { path: '/amount', decimals: coin.decimals })
  refuseServiceAddress(ctx, request.toAddress, '/toAddress')
  const ends = { from: endOf(network, coin), to: endOf(target, toCoin) }
  const choice = ctx.chooseRoute(ends, ctx.tenant.environment)
  refusePartnerless(ctx, choice)
  await refuseFlagged(ctx, request.toAddress)
  const floor = await readFloor(ctx, { request, source, network, target, coin, toCoin, rawAmount, choice })
  const terms = { source, network, coin, toCoin, rawAmount, floor, to: request.toAddress, ends, choice, except }
  const priced = await price(ctx, ctx.chains.on(network), terms)
  const gasNote = priced.steps.length === 0 ? ' The service pays the gas.' : ''
  const routeReason = `${choice.why}${gasNote}${keptNote(priced.quote, [coin, toCoin])}`
  return { source, network, target, fromChain, coin, toCoin, rawAmount, ...priced, route: choice.route, routeReason }
}

function refusePartnerless(ctx: Pick<Ctx, 'routingPartners' | 'tenant'>, choice: RouteChoice): void {
  if (choice.route === 'direct') return
  if (ctx.routingPartners[ctx.tenant.environment][choice.partner] === undefined) throw fail('partner-unavailable')
}

/** Describes what the partner keeps, which `toAmount` already excludes. */
function keptNote(quote: RouteQuote | undefined, coins: readonly Coin[]): string {
  const kept = (quote?.fees ?? []).flatMap(({ name, symbol, rawAmount }) => {
    const coin = coins.find((one) => one.symbol === symbol)
    return coin === undefined || rawAmount === 0n
      ? []
      : [` ${name} keeps ${formatAmount(rawAmount, coin.decimals)} ${symbol}.`]
  })
  return kept.join('')
}

function refuseOtherKind({ fromWalletId, fromWalletType }: NewTransfer): void {
  const kind = fromWalletId.startsWith('mwt_') ? 'master' : 'child'
  if (fromWalletType === undefined || fromWalletType === kind) return
  const errors = [{ path: '/fromWalletType', message: `does not match fromWalletId: ${kind}` }]
  throw failPlatform('validation-error', { errors })
}

function coinOf(network: Network, symbol: string, path: string): Coin {
  const native = nativeCoinOf(network)
  if (native?.symbol === symbol) return native
  const token = tokenBySymbol(network, symbol)
  if (token !== undefined) return token
  const known = [...(native === undefined ? [] : [native]), ...network.tokens].map((one) => one.symbol)
  const errors = [{ path, message: `is not a token of ${network.name}, which has ${known.join(', ')}` }]
  throw fail('token-not-supported', { errors })
}

/** The coin as partners name it: by the zero address. */
export function endOf(network: Network, { symbol, address, decimals }: Coin): RouteEnd {
  return { network, token: { symbol, decimals, address: address ?? zeroAddress } }
}

/** Refuses listed recipients always. With live keys, refuses every recipient while neither the list nor the oracle can screen it. */
export async function refuseFlagged(ctx: Pick<Ctx, 'screening' | 'tenant'>, to: Address): Promise<void> {
  const { environment } = ctx.tenant
  const screened = (await ctx.screening.screen([to])).of(to, environment)
  if (screened.result === 'flagged') throw fail('recipient-flagged')
  if (environment === 'live' && hasNoSource(screened)) throw fail('screening-unavailable')
}

interface PricingTerms {
  readonly source: SourceWallet
  readonly network: Network
  readonly coin: Coin
  readonly toCoin: Coin
  readonly rawAmount: bigint
  /** The least that must arrive, in the smallest unit of `toCoin`. */
  readonly floor: bigint
  readonly to: Address
  readonly ends: { readonly from: RouteEnd; readonly to: RouteEnd }
  readonly choice: RouteChoice
  readonly except: string | undefined
}

type PricedTransfer = Pick<TransferPlan, 'snapshot' | 'steps' | 'rawFee' | 'feeCoin' | 'quote' | 'claimGas'>
type GasPlan = Pick<TransferPlan, 'steps' | 'rawFee' | 'feeCoin'>

/** Prices the transfer, from the balances of the token and of the coin of the wallet and its master. */
function price(ctx: Ctx, chain: Chain, terms: PricingTerms): Promise<PricedTransfer> {
  const { network, source, coin, except } = terms
  const native = nativeCoinOf(network)
  const assets = [
    { coin, payer: 'source' } as const,
    ...(native === undefined
      ? []
      : [{ coin: native, payer: 'source' } as const, { coin: native, payer: 'master' } as const]),
  ]
  return withFunds(
    ctx,
    network,
    assets.map((asset) => ({ ...assetOf(ctx.tenant, { network, source }, asset), except })),
    (funds) => priceBy(ctx, chain, terms, funds),
  )
}

async function priceBy(ctx: Ctx, chain: Chain, terms: PricingTerms, funds: Funds): Promise<PricedTransfer> {
  const { coin, rawAmount, choice } = terms
  refuseShort([needOf(coin, rawAmount, funds.spendable[0])])
  const routed = requestOf(terms)
  const quote = choice.route === 'direct' ? undefined : await requestQuoteAbove(ctx, choice.partner, routed, terms)
  const steps = quote === undefined ? [await simulated(chain, terms)] : await partnerSteps(ctx, chain, routed, quote)
  const costed = await planGas(ctx, terms, steps, funds)
  return { ...costed, quote, snapshot: funds.snapshot, claimGas: await claimGasOf(ctx, terms, quote) }
}

/** Most bytes of call data in a transaction that delivers a transfer on its target chain. */
const claimBytesMax = 1_024

/** Cost of the claim that the quote announces, at the present fees of the target chain. */
async function claimGasOf(
  ctx: Pick<Ctx, 'chains'>,
  { ends }: PricingTerms,
  quote: RouteQuote | undefined,
): Promise<Gas | undefined> {
  const { network } = ends.to
  if (quote?.claimGas === undefined || network.nativeCoin === null) return undefined
  const fees = await ctx.chains.on(network).offeredFees()
  const rawAmount = feeOfGas({ gasLimit: quote.claimGas, dataBytes: claimBytesMax }, fees)
  const { symbol: token, decimals } = network.nativeCoin
  return { token, rawAmount, decimals, isOfMaster: true }
}

function requestOf({ source, rawAmount, to, ends }: PricingTerms): RouteRequest {
  return { ...ends, rawAmount, fromAddress: source.address, toAddress: to, slippageBps }
}

/** Simulates the transfer on the chain, and throws if the chain would refuse it. */
async function simulated(chain: Chain, { source, coin, rawAmount, to }: PricingTerms): Promise<PlannedStep> {
  const call =
    coin.address === undefined
      ? { to, data: '0x' as Hex, value: rawAmount }
      : { to: coin.address, data: encodeTransfer(to, rawAmount), value: 0n }
  const trial = await chain.tryCall({ from: source.address, ...call })
  if (!trial.ok) throw fail('transfer-reverted', { reason: trial.reason })
  return { kind: 'send', sender: source.address, ...call, gasLimit: trial.gasLimit }
}

/** A child that cannot pay for its gas signs for the relayer if possible; otherwise its master sends it the gas. */
async function planGas(
  ctx: Ctx,
  terms: PricingTerms,
  own: readonly PlannedStep[],
  { snapshot: { fees: prices }, spendable }: Funds,
): Promise<GasPlan> {
  const { source, network, coin, choice, rawAmount } = terms
  const [token, native, master] = spendable
  const feeCoin = nativeCoinOf(network)
  const available = native?.available ?? 0n
  if (
    feeCoin !== undefined &&
    choice.route === 'direct' &&
    coin.address !== undefined &&
    feeOfCalls(own, prices) > available &&
    (await canBeGasless(ctx, { source, network, coin, fees: prices, rawAmount }))
  )
    return { steps: [], rawFee: 0n, feeCoin }
  const isChild = source.address !== source.masterAddress
  const { topUp, ...fee } = payGas(own, {
    network,
    prices,
    amount: needOf(coin, rawAmount, token),
    native: available,
    masterNative: isChild ? (master?.available ?? 0n) : undefined,
  })
  if (feeCoin === undefined) return { ...fee, steps: own.map((step) => ({ ...step, feeToken: coin.address })) }
  if (topUp === 0n) return { ...fee, steps: own }
  const { address: to, masterAddress: sender } = source
  return { ...fee, steps: [{ kind: 'top-up', sender, to, data: '0x', value: topUp, gasLimit: plainGas }, ...own] }
}

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
export async function floorOf(ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>, terms: FloorTerms): Promise<bigint> {
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
export async function floorOfQuote(_ctx: unknown, terms: FloorTerms): Promise<bigint> {
  return refuseDirectBelow(terms, namedMinimum(terms) ?? parFloor(terms) ?? 1n)
}

function refuseDirectBelow({ choice, rawAmount, toCoin }: FloorTerms, floor: bigint): bigint {
  if (choice.route === 'direct' && rawAmount < floor) throw priceTooLow(toCoin, { rawOffered: rawAmount, floor })
  return floor
}

function namedMinimum({ request: { minToAmount }, toCoin: { decimals } }: FloorTerms): bigint | undefined {
  return minToAmount === undefined ? undefined : openAmount(minToAmount, { path: '/minToAmount', decimals })
}

/** Par value: every token of the registry is a dollar, and a coin is worth the same coin on another chain. Rounded up. */
function parFloor({ coin, toCoin, rawAmount }: FloorTerms): bigint | undefined {
  const areTokens = coin.address !== undefined && toCoin.address !== undefined
  const isOneCoin = coin.address === undefined && toCoin.address === undefined && coin.symbol === toCoin.symbol
  if (!areTokens && !isOneCoin) return undefined
  const unit = 10_000n * 10n ** BigInt(coin.decimals)
  return (rawAmount * parBps * 10n ** BigInt(toCoin.decimals) + unit - 1n) / unit
}

async function quotedMinimum(
  ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>,
  quoteId: QuoteId,
  terms: FloorTerms,
): Promise<bigint> {
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
    quoteId: quote.route === choice.route && quote.partner === (choice.route === 'direct' ? null : choice.partner),
  }
  return Object.entries(matches).flatMap(([field, isSame]) => (isSame ? [] : [field]))
}

/** Undefined if nothing is approved; on Tempo approval and call are one transaction. */
export function allowanceKeyOf({ network, source, coin, steps }: Planned): AllowanceKey | undefined {
  const call = steps.find(({ kind }) => kind === 'partner')
  if (call === undefined || coin.address === undefined || !steps.some(({ kind }) => kind === 'approve'))
    return undefined
  return { network, owner: source.address, token: coin.address, spender: call.to }
}

type Planned = Pick<TransferPlan, 'source' | 'network' | 'coin' | 'rawAmount' | 'steps' | 'snapshot'>

/** Reservation of one step of a transfer; a gasless transfer has no steps and reserves its token as part 0. */
interface PlannedWant extends Want {
  readonly part: number
  /** The contract that gets an allowance of the amount. */
  readonly spender?: string
  readonly reason: NewReservation['reason']
}

/** All reservations of a planned transfer: its token, and the coin or token that pays for the gas of each step. */
export function wantsOf(tenant: Tenant, plan: Planned, except?: string): readonly PlannedWant[] {
  const { network, coin, rawAmount, steps } = plan
  const token: PlannedWant = {
    asset: { ...assetOf(tenant, plan, { payer: 'source', coin }), except },
    part: Math.max(0, steps.length - 1),
    reason: 'transfer',
    rawAmount,
    gasLimit: 0n,
    dataBytes: 0,
  }
  if (steps.length === 0) return [token]
  const native = nativeCoinOf(network)
  if (native === undefined) return steps.map((step) => ({ ...token, ...gasOf(step) }))
  const paid = steps.map((step, part): PlannedWant => {
    const payer = step.kind === 'top-up' ? 'master' : 'source'
    const isAmount = coin.address === undefined && step.kind === 'send'
    const reason = step.kind === 'top-up' ? 'top-up' : isAmount ? 'transfer' : 'gas'
    const asset = { ...assetOf(tenant, plan, { payer, coin: native }), except }
    return { asset, part, reason, rawAmount: step.value, ...gasOf(step) }
  })
  const spender = allowanceKeyOf(plan)?.spender
  return coin.address === undefined ? paid : [{ ...token, ...(spender === undefined ? {} : { spender }) }, ...paid]
}

/** The transfer as a claim on its snapshot; `except` is a subject that has already reserved the same amounts. */
export function claimOf(tenant: Tenant, plan: Planned, except?: string): FundsClaim {
  const { snapshot, network, steps } = plan
  const topUp = steps.find(({ kind }) => kind === 'top-up')
  const native = nativeCoinOf(network)
  const brings =
    topUp === undefined || native === undefined
      ? undefined
      : { asset: assetOf(tenant, plan, { payer: 'source', coin: native }), rawAmount: topUp.value }
  return { snapshot, wants: wantsOf(tenant, plan, except), brings }
}

function gasOf({ gasLimit, data }: PlannedStep) {
  return { gasLimit, dataBytes: bytesOf(data) }
}

/** A coin of the wallet, or of the master that pays for its gas. */
export function assetOf(
  tenant: Tenant,
  { source, network }: Pick<TransferPlan, 'source' | 'network'>,
  { payer, coin }: { readonly payer: 'source' | 'master'; readonly coin: Coin },
): WalletAsset {
  return payer === 'source'
    ? { tenant, network, walletId: source.id, owner: source.address, coin }
    : { tenant, network, walletId: source.masterWalletId, owner: source.masterAddress, coin }
}

/** Maximum cost of the transfer in addition to its amount. Gas that a child pays from its top-up counts as the top-up. */
export function gasCostOf({
  steps,
  rawFee,
  feeCoin,
  snapshot,
}: Pick<TransferPlan, 'steps' | 'rawFee' | 'feeCoin' | 'snapshot'>): Gas | undefined {
  if (steps.length === 0) return undefined
  const topUp = steps.find(({ kind }) => kind === 'top-up')
  const rawAmount = topUp === undefined ? rawFee : topUp.value + plainFee(snapshot.fees)
  return { token: feeCoin.symbol, rawAmount, decimals: feeCoin.decimals, isOfMaster: topUp !== undefined }
}

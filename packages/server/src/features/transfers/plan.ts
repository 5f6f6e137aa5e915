import {
  type Address,
  type Chain as ChainName,
  encodeTransfer,
  formatAmount,
  type Hex,
  type Network,
  parseAmount,
  resolveNetwork,
  tokenBySymbol,
} from '@purser/protocol'
import type { Chain, LaneCall } from '../../chain/port.ts'
import type { RouteChoice, RouteEnd, RouteQuote, RouteRequest } from '../../partners/routing/port.ts'
import type { Ctx } from '../../platform/ctx.ts'
import { failPlatform, isProblem } from '../../platform/errors.ts'
import { networkFor } from '../chains/index.ts'
import {
  type Coin,
  type Funds,
  feeInToken,
  feeOfCall,
  gasLimitOf,
  hasCaughtUp,
  type Need,
  type Place,
  type Prices,
  plainFee,
  plainGas,
  readFunds,
  type Snapshot,
  shortagesOf,
  topUpOf,
} from '../funds/index.ts'
import { findSource, hasNoSource, refuseServiceAddress, type SourceWallet } from '../wallets/index.ts'
import { fail } from './errors.ts'
import { askQuoteAbove, floorOf } from './floor.ts'
import { canBeGasless } from './gasless/terms.ts'
import { endOf, partnerSteps, slippageBps } from './partner.ts'
import type { NewTransfer } from './schema.ts'

/** A transaction to come, as custody and the lane need it. */
export interface PlannedStep {
  readonly kind: 'top-up' | 'send' | 'approve' | 'partner'
  readonly sender: Address
  readonly to: Address
  readonly data: Hex
  readonly value: bigint
  readonly gasLimit: bigint
  /** On Tempo: what its fee is paid in, and the calls that run before it in its transaction. */
  readonly feeToken?: Address | undefined
  readonly callsBefore?: readonly LaneCall[]
}

/** A transfer that the wallet can afford as of a moment ago. */
export interface TransferPlan {
  readonly source: SourceWallet
  readonly network: Network
  readonly fromChain: ChainName
  readonly target: Network
  readonly coin: Coin
  readonly toCoin: Coin
  readonly rawAmount: bigint
  /** What the wallet was found to have, by which the reservation is judged. */
  readonly snapshot: Snapshot
  /** None where the settler brings what the child signs. */
  readonly steps: readonly PlannedStep[]
  /** At most, in the smallest unit of `feeCoin`. */
  readonly rawFee: bigint
  readonly feeCoin: Coin
  readonly route: 'direct' | 'partner-swap' | 'partner-bridge'
  readonly routeReason: string
  /** What the partner promised; undefined for `direct`. */
  readonly quote: RouteQuote | undefined
}

export interface PlanOptions {
  readonly readFloor?: typeof floorOf
  /** A subject that has reserved already what is planned now. */
  readonly except?: string
}

/**
 * Reads the request, the wallet and the chain, and says what would be sent; refuses what cannot be. Nothing is stored. `readFloor` says the
 * least that must arrive.
 */
export async function planTransfer(
  ctx: Ctx,
  request: NewTransfer,
  { readFloor = floorOf, except }: PlanOptions = {},
): Promise<TransferPlan> {
  refuseOtherKind(request)
  const source = await findSource(ctx.db, ctx.tenant, request.fromWalletId)
  if (source === undefined) throw fail('wallet-not-found')
  if (source.retiredAt !== null) throw fail('wallet-retired')
  const fromChain = request.fromChain ?? source.chain
  const network = networkFor(fromChain, ctx.tenant.environment)
  const target = networkFor(request.toChain, ctx.tenant.environment)
  const coin = coinOf(network, request.fromToken, '/fromToken')
  const toCoin = coinOf(target, request.toToken, '/toToken')
  const rawAmount = amountOf(request.amount, coin)
  refuseServiceAddress(ctx, request.toAddress, '/toAddress')
  const ends = { from: endOf(network, coin), to: endOf(target, toCoin) }
  const choice = ctx.chooseRoute(ends, ctx.tenant.environment)
  refusePartnerless(ctx, choice)
  await refuseFlagged(ctx, request.toAddress)
  const floor = await readFloor(ctx, { request, source, network, target, coin, toCoin, rawAmount, choice })
  const wish = { source, network, coin, toCoin, rawAmount, floor, to: request.toAddress, ends, choice, except }
  const priced = await price(ctx, ctx.chains.on(network), wish)
  const gasWords = priced.steps.length === 0 ? ' The service pays the gas.' : ''
  const routeReason = `${choice.why}${gasWords}${keptWords(priced.quote, [coin, toCoin])}`
  return { source, network, target, fromChain, coin, toCoin, rawAmount, ...priced, route: choice.route, routeReason }
}

function refusePartnerless(ctx: Ctx, choice: RouteChoice): void {
  if (choice.route === 'direct') return
  if (ctx.routingPartners[ctx.tenant.environment][choice.partner] === undefined) throw fail('partner-unavailable')
}

/** What the partner keeps, which is not in `toAmount` any more. */
function keptWords(quote: RouteQuote | undefined, coins: readonly Coin[]): string {
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
  throw failPlatform('validation-error', {
    errors: [{ path: '/fromWalletType', message: `is not what fromWalletId is: ${kind}` }],
  })
}

function coinOf(network: Network, symbol: string, path: string): Coin {
  const { nativeCoin } = network
  if (nativeCoin !== null && nativeCoin.symbol === symbol) return { ...nativeCoin, address: undefined }
  const token = tokenBySymbol(network, symbol)
  if (token !== undefined) return token
  const known = [...(nativeCoin === null ? [] : [nativeCoin.symbol]), ...network.tokens.map((one) => one.symbol)]
  throw fail('token-not-supported', {
    errors: [{ path, message: `is not a token of ${network.name}, which has ${known.join(', ')}` }],
  })
}

function amountOf(text: string, { decimals, symbol }: Coin): bigint {
  const raw = parseAmount(text, decimals)
  if (typeof raw === 'bigint' && raw > 0n) return raw
  const why = typeof raw === 'bigint' ? 'must be more than zero' : `must be a decimal amount: ${raw}`
  const message = raw === 'too-many-digits' ? `must have at most the ${decimals} decimals of ${symbol}` : why
  throw failPlatform('validation-error', { errors: [{ path: '/amount', message }] })
}

/** Listed recipients are always refused. With live keys, nothing is sent while neither the list nor the oracle can judge the recipient. */
async function refuseFlagged(ctx: Ctx, to: Address): Promise<void> {
  const { environment } = ctx.tenant
  const screened = (await ctx.screening.screen([to])).of(to, environment)
  if (screened.result === 'flagged') throw fail('recipient-flagged')
  if (environment === 'live' && hasNoSource(screened)) throw fail('screening-unavailable')
}

interface Wish {
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

type Priced = Pick<TransferPlan, 'snapshot' | 'steps' | 'rawFee' | 'feeCoin' | 'quote'>
type Costed = Pick<TransferPlan, 'steps' | 'rawFee' | 'feeCoin'>

/** Who is short is looked at once more when deposits were mined that were not booked yet. */
async function price(ctx: Ctx, chain: Chain, wish: Wish): Promise<Priced> {
  const places = placesOf(ctx, wish)
  const first = await readFunds(ctx, wish.network, places)
  try {
    return await priceBy(ctx, chain, wish, first)
  } catch (error) {
    if (!isProblem(error, 'insufficient-balance') || !(await hasCaughtUp(ctx, first.snapshot))) throw error
    return priceBy(ctx, chain, wish, await readFunds(ctx, wish.network, places))
  }
}

/** What moves, and the coin of the wallet and of its master where the network has one. */
function placesOf({ tenant }: Ctx, { source, network, coin, except }: Wish): readonly Place[] {
  const own = { tenant, network, walletId: source.id, owner: source.address, except }
  const { nativeCoin } = network
  if (nativeCoin === null) return [{ ...own, coin }]
  const native = { ...nativeCoin, address: undefined }
  const payer = { walletId: source.masterWalletId, owner: source.masterAddress }
  const master = { tenant, network, ...payer, coin: native, except }
  return [{ ...own, coin }, { ...own, coin: native }, master]
}

async function priceBy(ctx: Ctx, chain: Chain, wish: Wish, { snapshot, spendable }: Funds): Promise<Priced> {
  const { coin } = wish
  const [own, native, master] = spendable
  const funds: Available = { native: native?.available ?? 0n, masterNative: master?.available ?? 0n }
  const amountNeed = {
    coin,
    required: wish.rawAmount,
    available: own?.available ?? 0n,
    held: own?.unscreened ?? 0n,
  }
  refuseShort([amountNeed])
  const routed = requestOf(wish)
  const { choice } = wish
  const quote = choice.route === 'direct' ? undefined : await askQuoteAbove(ctx, choice.partner, routed, wish)
  const steps = quote === undefined ? [await tried(chain, wish)] : await partnerSteps(ctx, chain, routed, quote)
  const costed = await pricedOn(ctx, wish, { own: steps, fees: snapshot.fees, funds, amountNeed })
  return { ...costed, quote, snapshot }
}

function requestOf({ source, rawAmount, to, ends }: Wish): RouteRequest {
  return { ...ends, rawAmount, fromAddress: source.address, toAddress: to, slippageBps }
}

/** Coin that may leave the wallet and its master, in wei. */
interface Available {
  readonly native: bigint
  readonly masterNative: bigint
}

/** Has the chain try the call, and refuses what it would refuse. */
async function tried(chain: Chain, { source, coin, rawAmount, to }: Wish): Promise<PlannedStep> {
  const call =
    coin.address === undefined
      ? { to, data: '0x' as Hex, value: rawAmount }
      : { to: coin.address, data: encodeTransfer(to, rawAmount), value: 0n }
  const trial = await chain.tryCall({ from: source.address, ...call })
  if (!trial.ok) throw fail('transfer-reverted', { reason: trial.reason })
  return { kind: 'send', sender: source.address, ...call, gasLimit: gasLimitOf(trial.gas) }
}

function refuseShort(needs: readonly Need[]): void {
  const balances = shortagesOf(needs)
  if (balances.length > 0) throw fail('insufficient-balance', { balances })
}

/** A child that cannot pay for its gas signs for the relayer where that is possible; where not, its master sends it the gas. */
async function pricedOn(ctx: Ctx, wish: Wish, costs: Costs): Promise<Costed> {
  const { nativeCoin } = wish.network
  if (nativeCoin === null) return pricedInToken(wish, costs)
  const native = { ...nativeCoin, address: undefined }
  const { source, network, coin, choice } = wish
  const { own, fees, funds } = costs
  const isDirect = choice.route === 'direct' && coin.address !== undefined
  if (isDirect && feeOf(own, fees) > funds.native && (await canBeGasless(ctx, { source, network, coin, fees })))
    return { steps: [], rawFee: 0n, feeCoin: native }
  return pricedInCoin(wish, native, costs)
}

/** Tempo: gas is paid in the token that moves, whatever is called. */
function pricedInToken({ coin }: Wish, { own, fees, amountNeed }: Costs): Costed {
  const gas = own.reduce((sum, { gasLimit }) => sum + gasLimit, 0n)
  const rawFee = feeInToken(gas, fees.maxFee, coin.decimals)
  refuseShort([amountNeed, { ...amountNeed, required: rawFee }])
  return { steps: own.map((step) => ({ ...step, feeToken: coin.address })), rawFee, feeCoin: coin }
}

function feeOf(steps: readonly PlannedStep[], prices: Prices): bigint {
  return steps.reduce((sum, step) => sum + feeOfCall(step, prices), 0n)
}

interface Costs {
  readonly own: readonly PlannedStep[]
  readonly fees: Prices
  readonly funds: Available
  readonly amountNeed: Need
}

/** A child that cannot pay for its gas is sent it by its master first. */
function pricedInCoin(wish: Wish, native: Coin, { own, fees, funds, amountNeed }: Costs): Costed {
  const { source, coin, rawAmount } = wish
  const gas = feeOf(own, fees)
  const isChild = source.address !== source.masterAddress
  const spare = coin.address === undefined ? funds.native - rawAmount : funds.native
  const value = isChild ? topUpOf(gas, spare > 0n ? spare : 0n) : 0n
  if (value === 0n) {
    refuseShort([amountNeed, { coin: native, required: gas, available: funds.native }])
    return { steps: own, rawFee: gas, feeCoin: native }
  }
  const topUp: PlannedStep = {
    kind: 'top-up',
    sender: source.masterAddress,
    to: source.address,
    data: '0x',
    value,
    gasLimit: plainGas,
  }
  const topUpGas = plainFee(fees)
  refuseShort([{ coin: native, required: value + topUpGas, available: funds.masterNative }])
  return { steps: [topUp, ...own], rawFee: gas + topUpGas, feeCoin: native }
}

/** The coin that a stored transfer moves, and the one that its gas is paid in. */
export function coinsOf(row: {
  readonly fromChain: ChainName
  readonly environment: 'test' | 'live'
  readonly fromToken: string
  readonly decimals: number
}): { readonly feeSymbol: string; readonly feeDecimals: number } {
  const nativeCoin = resolveNetwork(row.fromChain, row.environment)?.nativeCoin ?? null
  return nativeCoin === null
    ? { feeSymbol: row.fromToken, feeDecimals: row.decimals }
    : { feeSymbol: nativeCoin.symbol, feeDecimals: nativeCoin.decimals }
}

import { formatAmount, type Network } from '@purser/protocol'
import { fail as failChain } from '../../chain/errors.ts'
import { feeInToken, feeOfCalls, feeOfGas, type PricedCall, type Prices, plainFee } from '../../chain/fees/costs.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Tx } from '../../platform/db/db.ts'
import { defineErrors, failPlatform, isProblem } from '../../platform/errors.ts'
import {
  type BookPort,
  bookingMsMax,
  type Deps,
  type Funds,
  type ReadFunds,
  type Snapshot,
  spendableOf,
} from './snapshot.ts'
import { type Coin, lockOwners, type WalletAsset, type Want } from './store.ts'

const fail = defineErrors({
  'insufficient-balance': {
    status: 422,
    title: 'Insufficient Balance',
    detail:
      'The wallet has too little for the transfer and its gas. balances lists required, available and held (until the sender is screened) for each token.',
    causes: [
      'The wallet has less of the token than the amount, or less of the chain’s coin than the gas: a fresh managed wallet has neither.',
      'A part is reserved by transfers that are under way, or arrived in a block that is not final.',
      'A part is on hold (`held`) until its sender is screened.',
    ],
    fix: 'Read `balances`: fund the token that is short (in test with `POST /test/deposits`, for gas with `"token": "ETH"`), or send less. For money on hold or not final, repeat later.',
  },
})
/** The error of operations that pay from a managed wallet. */
export const fundErrors = fail.table

/** The coin in which the network's gas is paid; undefined if a token pays it (Tempo). */
export function nativeCoinOf({ nativeCoin }: Network): Coin | undefined {
  return nativeCoin === null ? undefined : { ...nativeCoin, address: undefined }
}

/** The amount of a coin that a wallet needs, and its available amount (not reserved); in the smallest unit. */
interface Need {
  readonly coin: Coin
  readonly required: bigint
  readonly available: bigint
  /** Additional amount that waits for the screening of its sender. */
  readonly held?: bigint
}

/** The need of an amount, and what the wallet has of its coin. */
export function needOf(
  coin: Coin,
  required: bigint,
  own: { readonly available: bigint; readonly unscreened: bigint } | undefined,
): Need {
  return { coin, required, available: own?.available ?? 0n, held: own?.unscreened ?? 0n }
}

/** Throws `insufficient-balance` unless the needs are met; several needs of one coin are added. */
export function refuseShort(needs: readonly Need[]): void {
  const shortages = shortagesOf(needs)
  if (shortages.length > 0) throw insufficientBalance(shortages)
}

const contendedMsMax = 10_000

/** Cause of a temporary refusal: another request reserved the money after the snapshot was read. */
const contended = new Error('another request reserved the money since it was read')

/** The refusal if other requests reserved the money after the plan's snapshot; `retryOnContention` then plans again. */
export function contendedBy({ coin, rawAmount, feeCoin, rawFee }: Cost): Error {
  const needs = [
    { coin, required: rawAmount, available: 0n },
    { coin: feeCoin, required: rawFee, available: 0n },
  ]
  return insufficientBalance(shortagesOf(needs), contended)
}

/** The amount that a payment moves, and at most the cost of its gas. */
interface Cost {
  readonly coin: Coin
  readonly rawAmount: bigint
  readonly feeCoin: Coin
  readonly rawFee: bigint
}

/**
 * Retries work with a new snapshot while other requests reserve the money first. Each retry follows a reservation of another request, so one of
 * several always succeeds. Throws 503 `service-unavailable` after ten seconds: whether the funds are short is unknown, and nothing is stored.
 */
export async function retryOnContention<T>({ clock }: { readonly clock: Clock }, work: () => Promise<T>): Promise<T> {
  const until = clock.now().getTime() + contendedMsMax
  for (;;) {
    try {
      return await work()
    } catch (error) {
      const isContended = error instanceof Error && error.cause === contended
      if (!isContended) throw error
      if (clock.now().getTime() >= until) throw failPlatform('service-unavailable', {}, error)
    }
  }
}

/** A shortage as a problem record shows it: amounts in whole tokens. */
interface Shortage {
  readonly token: string
  readonly required: string
  readonly available: string
  /** Omitted if nothing waits for the screening of its sender. */
  readonly held?: string
}

/** Shortages of the needs that are not met; several needs of one coin are added. */
export function shortagesOf(needs: readonly Need[]): Shortage[] {
  const bySymbol = new Map<string, Need>()
  for (const need of needs) {
    const before = bySymbol.get(need.coin.symbol)
    bySymbol.set(need.coin.symbol, { ...need, required: need.required + (before?.required ?? 0n) })
  }
  return [...bySymbol.values()]
    .filter(({ required, available }) => required > available)
    .map(({ coin, required, available, held = 0n }) => ({
      token: coin.symbol,
      required: formatAmount(required, coin.decimals),
      available: formatAmount(available < 0n ? 0n : available, coin.decimals),
      ...(held > 0n ? { held: formatAmount(held, coin.decimals) } : {}),
    }))
}

/** The detail states the amounts too, since logs and clients often show nothing else. */
function insufficientBalance(balances: readonly Shortage[], cause?: unknown): Error {
  const amounts = balances.map(({ token, required, available, held }) => {
    const waiting = held === undefined ? '' : ` and ${held} on hold until its sender is screened`
    return `${required} ${token} required, ${available} available${waiting}`
  })
  const detail = `The wallet has too little for the transfer and its gas: ${amounts.join('; ')}.`
  return fail('insufficient-balance', { detail, balances }, cause)
}

/** The cost of a call, and the coin of the child that sends it; in wei. */
interface ChildCall {
  /** The cost of its gas at most, with the L1 fee. */
  readonly gas: bigint
  /** The amount that it sends. */
  readonly value: bigint
  readonly native: bigint
}

/**
 * Top-up that a master sends a child for the gas of its call: twice the current maximum cost, since fees may rise before the coin arrives, less the
 * child's coin beyond the amount that it sends. What remains pays for its next call. Zero if the child has enough. Also zero if it lacks more of the
 * amount than the top-up would bring: a master does not pay the amount.
 */
export function topUpOf({ gas, value, native }: ChildCall): bigint {
  const spare = native - value
  if (spare >= gas || spare < -gas) return 0n
  return gas * 2n - (spare > 0n ? spare : 0n)
}

/** The gas of calls at most, and who pays it. */
interface GasPayment {
  readonly feeCoin: Coin
  /** In the smallest unit of `feeCoin`; with the gas of the top-up. */
  readonly rawFee: bigint
  /** Coin that the master sends first, in wei; zero if the wallet pays by itself. */
  readonly topUp: bigint
}

/** The amount that a payment takes from its wallet, and the coin that is available for its gas, in wei. */
interface GasTerms {
  readonly network: Network
  readonly prices: Prices
  readonly amount: Need
  readonly native: bigint
  /** Of the master that pays for a child; undefined for a master, which pays by itself. */
  readonly masterNative: bigint | undefined
}

/** Decides who pays for the gas of a wallet's calls. Throws `insufficient-balance` if neither the wallet nor its master can. */
export function payGas(calls: readonly PricedCall[], terms: GasTerms): GasPayment {
  const { network, prices, amount, native, masterNative } = terms
  const { coin } = amount
  const feeCoin = nativeCoinOf(network)
  if (feeCoin === undefined) {
    const gas = calls.reduce((sum, { gasLimit }) => sum + gasLimit, 0n)
    const rawFee = feeInToken(gas, prices.maxFee, coin.decimals)
    refuseShort([amount, { ...amount, required: rawFee }])
    return { feeCoin: coin, rawFee, topUp: 0n }
  }
  const gas = feeOfCalls(calls, prices)
  const value = coin.address === undefined ? amount.required : 0n
  const topUp = masterNative === undefined ? 0n : topUpOf({ gas, value, native })
  if (masterNative === undefined || topUp === 0n) {
    refuseShort([amount, { coin: feeCoin, required: gas, available: native }])
    return { feeCoin, rawFee: gas, topUp }
  }
  const topUpGas = plainFee(prices)
  refuseShort([{ coin: feeCoin, required: topUp + topUpGas, available: masterNative }])
  return { feeCoin, rawFee: gas + topUpGas, topUp }
}

/**
 * Waits until the deposits of the newest deep-enough block are booked, for at most five seconds. `was-booked`: they were when the snapshot was
 * made, so a shortage is final. Throws 503 `chain-unavailable` if they are not booked in time: whether funds are short is unknown.
 */
async function waitUntilBooked(
  ctx: Pick<Deps, 'db' | 'deposits'>,
  { network, block, newest }: Snapshot,
): Promise<'was-booked' | 'waited'> {
  if (block >= newest) return 'was-booked'
  if (await isBookedInTime(ctx, network, newest)) return 'waited'
  throw failChain('chain-unavailable', {}, new Error(`the deposits of block ${newest} are not booked yet`))
}

/**
 * Reads the spendable amounts of assets for work that may refuse them. It reads and works once more if funds are short while mined deposits are
 * not booked yet.
 */
export async function withFunds<T>(
  ctx: Deps & { readonly readFunds: ReadFunds },
  network: Network,
  assets: readonly WalletAsset[],
  work: (funds: Funds) => Promise<T>,
): Promise<T> {
  const funds = await ctx.readFunds(network, assets)
  try {
    return await work(funds)
  } catch (error) {
    if (!isProblem(error, 'insufficient-balance')) throw error
    if ((await waitUntilBooked(ctx, funds.snapshot)) === 'was-booked') throw error
    return work(await ctx.readFunds(network, assets))
  }
}

/** Waits for deposits before the first read. */
export async function waitForDeposits(ctx: Pick<Deps, 'chains' | 'db' | 'deposits'>, network: Network): Promise<void> {
  const { newest } = await ctx.chains.on(network).stateAt([])
  await isBookedInTime(ctx, network, newest)
}

function isBookedInTime(
  { db, deposits }: Pick<Deps, 'db' | 'deposits'>,
  { name }: Network,
  block: bigint,
): Promise<boolean> {
  return deposits.isBookedInTime(db, name, { block, msMax: bookingMsMax })
}

/** Longest that a snapshot may be used, in milliseconds by the database's clock. */
const snapshotMsMax = 60_000

/** The reservation that one subject requests, evaluated against the snapshot of its plan. */
export interface FundsClaim {
  readonly snapshot: Snapshot
  readonly wants: readonly Want[]
  /** Amount that the subject adds to an asset before it takes from it: a gas top-up. */
  readonly brings?: { readonly asset: WalletAsset; readonly rawAmount: bigint } | undefined
}

/** Locks the accounts of the claims, and returns whether each is covered; see `lockOwners` and `areCovered`. */
export async function lockCovered(ctx: BookPort, tx: Tx, claims: readonly FundsClaim[]): Promise<readonly boolean[]> {
  const assets = claims.flatMap(({ wants }) => wants.map(({ asset }) => asset))
  // Sent together: the server executes the others when the first has its locks.
  const [, covered] = await Promise.all([lockOwners(tx, assets), areCovered(ctx, tx, claims)])
  return covered
}

/**
 * Whether each claim is covered by the balances of its snapshot less all other reservations. Claims are evaluated in order: each covered
 * claim counts against the later ones. Call it under the owners' locks (`lockOwners`), in the transaction that inserts the reservations. A
 * snapshot older than `snapshotMsMax` covers nothing.
 */
export async function areCovered(ctx: BookPort, tx: Tx, claims: readonly FundsClaim[]): Promise<readonly boolean[]> {
  const seen = new Map<Snapshot, Map<string, WalletAsset>>()
  for (const { snapshot, wants } of claims) {
    const assets = seen.get(snapshot) ?? new Map<string, WalletAsset>()
    seen.set(snapshot, assets)
    for (const { asset } of wants) assets.set(accountOf(asset), asset)
  }
  const each = [...seen].flatMap(([snapshot, assets]) =>
    [...assets].map(([name, asset]) => ({ snapshot, name, asset })),
  )
  const amounts = await spendableOf(tx, ctx, each)
  const oldest = Math.max(...amounts.map(({ readAt }) => readAt.getTime())) - snapshotMsMax
  const available = new Map<Snapshot, Map<string, bigint>>()
  for (const [index, { snapshot, name }] of each.entries()) {
    const own = available.get(snapshot) ?? new Map<string, bigint>()
    available.set(snapshot, own.set(name, amounts[index]?.available ?? 0n))
  }
  const taken = new Map<string, bigint>()
  return claims.map(({ snapshot, wants, brings }) => {
    const needs = new Map<string, bigint>()
    for (const want of wants) add(needs, accountOf(want.asset), maxCostOf(want, snapshot))
    const covers = ([name, need]: readonly [string, bigint]): boolean => {
      const own = brings !== undefined && accountOf(brings.asset) === name ? need - brings.rawAmount : need
      return own <= 0n || own <= (available.get(snapshot)?.get(name) ?? 0n) - (taken.get(name) ?? 0n)
    }
    if (snapshot.readAt.getTime() < oldest || ![...needs].every(covers)) return false
    for (const [name, need] of needs) add(taken, name, need)
    return true
  })
}

function add(sums: Map<string, bigint>, name: string, amount: bigint): void {
  sums.set(name, (sums.get(name) ?? 0n) + amount)
}

function accountOf({ network, owner, coin }: WalletAsset): string {
  return `${network.name} ${owner} ${coin.symbol}`
}

/** Maximum cost in the smallest unit of the asset's coin. */
function maxCostOf({ asset: { network, coin }, rawAmount, gasLimit, dataBytes }: Want, { fees }: Snapshot): bigint {
  if (gasLimit === 0n) return rawAmount
  if (network.nativeCoin === null) return rawAmount + feeInToken(gasLimit, fees.maxFee, coin.decimals)
  return rawAmount + feeOfGas({ gasLimit, dataBytes }, fees)
}

import { type Address, type Hex, isFinalAtDepth, type Network } from '@purser/protocol'
import { fail as failChain } from '../../chain/errors.ts'
import type { ChainPorts, OfferedFees } from '../../chain/port.ts'
import type { Db, Queryable, Tx } from '../../platform/db/db.ts'
import { isProblem } from '../../platform/errors.ts'
import type { AmountOnHold, DepositBook } from './deposit-book.ts'
import { feeInToken, feeOfGas } from './needs.ts'
import { type Allowed, lockOwners, type Reserved, sumReserved, type WalletAsset, type Want } from './store.ts'

export interface OwnerState {
  /** Its transaction count in the block; 0 if it had no transaction in progress. */
  readonly nonce: bigint
  /** By symbol, in the smallest unit. Undefined if the quorum did not agree. */
  readonly balances: ReadonlyMap<string, bigint | undefined>
  /** The reservations, by their `seq`, whose authorization is used in the block. */
  readonly used: readonly bigint[]
  /** The rest of the allowances for reservations, as far as the quorum agreed. */
  readonly allowed: readonly Allowed[]
}

/** Balances and nonces of accounts in one block that is deep enough and whose deposits are booked. */
export interface Snapshot {
  readonly network: Network
  readonly block: bigint
  readonly blockHash: Hex
  /** The height that would be deep enough once its deposits are booked. */
  readonly newest: bigint
  /** By the database's clock, taken before any read. */
  readonly readAt: Date
  readonly fees: OfferedFees
  readonly owners: ReadonlyMap<string, OwnerState>
}

interface BookPort {
  readonly deposits: DepositBook
}

export type Deps = { readonly db: Db } & Pick<ChainPorts, 'chains'> & BookPort

/** Longest that a snapshot may be used, in milliseconds by the database's clock. */
const snapshotMsMax = 60_000

/** Reads the spendable amounts of assets, all of one network. */
export type ReadFunds = (network: Network, assets: readonly WalletAsset[]) => Promise<Funds>

/** Spendable amount of an asset, in its smallest unit. Negative if more is reserved than the balance. */
export interface Spendable {
  readonly available: bigint
  /** Amount that waits for the screening of its sender; not part of `available`. */
  readonly unscreened: bigint
  /** Amount that screening froze; not part of `available`. */
  readonly frozen: bigint
  /** Other amount in blocks that are not final; not part of `available`. */
  readonly notFinal: bigint
  /** Amount that transactions and authorizations in progress will take; not part of `available`. */
  readonly reserved: bigint
  /** By the database's clock. */
  readonly readAt: Date
}

interface Seen {
  readonly snapshot: Snapshot
  readonly asset: WalletAsset
}

/** Amounts that the rows subtract from the balance of a asset. */
export interface Taken {
  readonly onHold: AmountOnHold
  readonly reserved: Reserved
}

/** A token whose amount on hold is read; nothing for the coin, which is never on hold. */
function tokenHolding({ snapshot, asset: { tenant, walletId, network, owner, coin } }: Seen) {
  if (coin.address === undefined) return []
  const { block: upTo, blockHash: upToHash } = snapshot
  const rawBalance = ownerIn(snapshot, owner).balances.get(coin.symbol)
  return [{ tenant, walletId, network: network.name, token: coin.address, upTo, upToHash, rawBalance }]
}

/** Returns them in the order of `seen`, with two statements. */
export async function takenFrom(
  db: Queryable,
  { deposits }: BookPort,
  seen: readonly Seen[],
): Promise<readonly Taken[]> {
  const tokens = seen.flatMap(tokenHolding)
  const questions = seen.map(({ snapshot, asset: { network, owner, coin, except } }) => {
    const { nonce, used, allowed } = ownerIn(snapshot, owner)
    const { maxFee, l1Fee } = snapshot.fees
    const { block } = snapshot
    return { network: network.name, owner, asset: coin.symbol, block, nonce, used, allowed, maxFee, l1Fee, except }
  })
  // Sent together.
  const [amounts, sums] = await Promise.all([
    tokens.length === 0 ? [] : deposits.amountsOnHold(db, tokens),
    sumReserved(db, questions),
  ])
  const onHold = amounts.values()
  return sums.map((reserved, index) => {
    const isCoin = seen[index]?.asset.coin.address === undefined
    return { onHold: (isCoin ? undefined : onHold.next().value) ?? nothing, reserved }
  })
}

/**
 * Spendable amounts, in the order of the assets: the balance in the snapshot's block less the frozen, unscreened and non-final amounts, and
 * less all reservations that this block does not include yet. Under the owners' locks no new reservation can be made meanwhile.
 */
export async function spendableOf(db: Queryable, deps: BookPort, seen: readonly Seen[]): Promise<Spendable[]> {
  const taken = await takenFrom(db, deps, seen)
  return seen.map((one, index) => spendableBy(one, taken[index]))
}

export function spendableBy({ snapshot, asset: { network, owner, coin } }: Seen, taken: Taken | undefined): Spendable {
  const balance = ownerIn(snapshot, owner).balances.get(coin.symbol)
  if (balance === undefined) throw failChain('chain-unavailable', {}, new Error(`no balance of ${coin.symbol}`))
  if (taken === undefined) throw new Error('a asset that was not read')
  const { frozen, notFinal, isBooked } = taken.onHold
  // A balance that is not read yet is on hold with more than any balance.
  const unscreened = taken.onHold.unscreened < balance ? taken.onHold.unscreened : balance
  if (!isBooked) throw failChain('chain-unavailable', {}, new Error('deposits are not booked on this fork yet'))
  const { raw, wei, readAt } = taken.reserved
  const gas = network.nativeCoin === null ? feeInToken(wei, 1n, coin.decimals) : wei
  const waiting = isFinalAtDepth(network) ? 0n : notFinal
  const reserved = raw + gas
  const available = balance - frozen - unscreened - waiting - reserved
  return { available, unscreened, frozen, notFinal: waiting, reserved, readAt }
}

const nothing: AmountOnHold = { frozen: 0n, unscreened: 0n, notFinal: 0n, isBooked: true }

function ownerIn({ owners }: Snapshot, owner: Address): OwnerState {
  const state = owners.get(owner)
  if (state === undefined) throw new Error('an account that the snapshot does not cover')
  return state
}

/** A snapshot and the spendable amounts of assets, before this request reserves any. */
export interface Funds {
  readonly snapshot: Snapshot
  /** In the order of the assets. */
  readonly spendable: readonly Spendable[]
}

/** Longest that a read waits for deposits to be booked. */
export const bookingMsMax = 5_000

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

/** The reservation that one subject requests, evaluated against the snapshot of its plan. */
export interface FundsClaim {
  readonly snapshot: Snapshot
  readonly wants: readonly Want[]
  /** Amount that the subject adds to a asset before it takes from it: a gas top-up. */
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

import { type Address, bytesToHex, type Hex, isFinalAtDepth, type Network } from '@purser/protocol'
import { fail as failChain } from '../../chain/errors.ts'
import { feeInToken } from '../../chain/fees/costs.ts'
import type { ChainPorts, OfferedFees, StateQuestion } from '../../chain/port.ts'
import { encodeAllowance } from '../../platform/contract-calls.ts'
import { batch, batchByTenant } from '../../platform/db/batch.ts'
import type { Db, Queryable } from '../../platform/db/db.ts'
import type { AmountOnHold, DepositBook } from './deposit-book.ts'
import { type Allowed, type Reserved, readUnderWay, sumReserved, type UnderWay, type WalletAsset } from './store.ts'

interface OwnerState {
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

export interface BookPort {
  readonly deposits: DepositBook
}

export type Deps = { readonly db: Db } & Pick<ChainPorts, 'chains'> & BookPort

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

/** Amounts that the rows subtract from the balance of an asset. */
interface Taken {
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
async function takenFrom(db: Queryable, { deposits }: BookPort, seen: readonly Seen[]): Promise<readonly Taken[]> {
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

function spendableBy({ snapshot, asset: { network, owner, coin } }: Seen, taken: Taken | undefined): Spendable {
  const balance = ownerIn(snapshot, owner).balances.get(coin.symbol)
  if (balance === undefined) throw failChain('chain-unavailable', {}, new Error(`no balance of ${coin.symbol}`))
  if (taken === undefined) throw new Error('an asset that was not read')
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

/** Result of one batched read: a snapshot, and the rows for every asset in it. */
interface BatchedRead {
  readonly snapshot: Snapshot
  readonly taken: ReadonlyMap<string, Taken>
}

type Reader = (assets: readonly WalletAsset[]) => Promise<BatchedRead>

/** Most assets of a caller, and most reservations under way of a tenant, that are read with those of other tenants. */
const sharedMax = 100
/**
 * Milliseconds for which a tenant is read apart after more reservations of it were under way, and most such tenants; above it they are forgotten
 * until their next read.
 */
const apartMs = 60_000
const apartMax = 10_000
const batchLimits = { itemsMax: 128, batchesMax: 1 }

/**
 * Creates the reader of one process. Concurrent callers share one read, which begins after all of them called, so that statements and node
 * calls are not made per caller. A tenant with many reservations has a reader of its own, so that its reads delay and fail nobody else's, and a
 * large call of a tenant delays no small one of it.
 */
export function createReadFunds(deps: Pick<Deps, 'chains' | 'db' | 'deposits'>): ReadFunds {
  const readers = new Map<string, ReturnType<typeof createReaders>>()
  return async (network, assets) => {
    const read = readers.get(network.name) ?? createReaders(deps, network)
    readers.set(network.name, read)
    const { snapshot, taken } = await read(assets)
    return { snapshot, spendable: assets.map((asset) => spendableBy({ snapshot, asset }, taken.get(nameOf(asset)))) }
  }
}

/** All assets of one call are of one tenant. */
function createReaders(deps: Pick<Deps, 'chains' | 'db' | 'deposits'>, network: Network): Reader {
  const apart = createApart()
  const ownReader = () =>
    batchByTenant<readonly WalletAsset[], BatchedRead>(batchLimits, async (_db, _tenant, batches) => {
      const found = await readFound(deps, network, batches.flat())
      apart.update(batches, found)
      const read = await readTogether(deps, network, batches.flat(), found)
      return batches.map(() => read)
    })
  const [readLarge, readSmall] = [ownReader(), ownReader()]
  const readAlone: Reader = (assets) => {
    const [first] = assets
    if (first === undefined) throw new Error('a read apart without an asset')
    const read = assets.length > sharedMax ? readLarge : readSmall
    return read({ db: deps.db, tenant: first.tenant }, assets)
  }
  const shared = batch<readonly WalletAsset[], Promise<BatchedRead>>(batchLimits, async (batches) => {
    const found = await readFound(deps, network, batches.flat())
    const many = apart.update(batches, found)
    const small = batches.filter((assets) => !many.has(tenantOf(assets)))
    const reads = batches.map((assets) => (many.has(tenantOf(assets)) ? readAlone(assets) : undefined))
    const together = small.length === 0 ? undefined : readTogether(deps, network, small.flat(), found)
    // The callers handle the failures, of which each gets its own.
    for (const read of reads) read?.catch(() => undefined)
    await together?.catch(() => undefined)
    return reads.map((read) => read ?? (together as Promise<BatchedRead>))
  })
  return async (assets) =>
    assets.length > sharedMax || apart.has(tenantOf(assets)) ? readAlone(assets) : await shared(assets)
}

/** The tenants that are read apart. */
function createApart() {
  // By the database's clock.
  const untilMs = new Map<string, number>()
  return {
    has: (tenant: string): boolean => untilMs.has(tenant),
    /** Returns the tenants with many reservations under way, and keeps until when they are read apart. */
    update(batches: readonly (readonly WalletAsset[])[], { underWay }: Rows): ReadonlySet<string> {
      const many = tenantsOfMany(batches, underWay)
      const nowMs = underWay.readAt.getTime()
      for (const tenant of new Set(batches.map(tenantOf)))
        if (many.has(tenant)) {
          if (untilMs.size >= apartMax) untilMs.clear()
          untilMs.set(tenant, nowMs + apartMs)
        } else if ((untilMs.get(tenant) ?? nowMs) < nowMs) untilMs.delete(tenant)
      return many
    },
  }
}

/** The tenants of which more reservations are under way than are read with those of others. */
function tenantsOfMany(
  batches: readonly (readonly WalletAsset[])[],
  { authorizations, allowances }: UnderWay,
): ReadonlySet<string> {
  const ofOwners = Map.groupBy([...authorizations, ...allowances], ({ owner }) => owner)
  const owners = new Map<string, Set<string>>()
  for (const assets of batches) {
    const own = owners.get(tenantOf(assets)) ?? new Set()
    owners.set(tenantOf(assets), own)
    for (const { owner } of assets) own.add(owner)
  }
  const countOf = (own: ReadonlySet<string>) => [...own].reduce((sum, one) => sum + (ofOwners.get(one)?.length ?? 0), 0)
  return new Set([...owners].flatMap(([tenant, own]) => (countOf(own) > sharedMax ? [tenant] : [])))
}

async function readTogether(
  deps: Pick<Deps, 'chains' | 'db' | 'deposits'>,
  network: Network,
  given: readonly WalletAsset[],
  found: Found,
): Promise<BatchedRead> {
  const assets = new Map(given.map((asset) => [nameOf(asset), asset]))
  const [fees, states] = await Promise.all([found.fees, readStates(deps, network, [...assets.values()], found)])
  const snapshot: Snapshot = { network, fees, ...states }
  const seen = [...assets.values()].map((asset) => ({ snapshot, asset }))
  const taken = await takenFrom(deps.db, deps, seen)
  return { snapshot, taken: new Map([...assets.keys()].flatMap((name, index) => entryOf(name, taken[index]))) }
}

function entryOf(name: string, taken: Taken | undefined): [string, Taken][] {
  return taken === undefined ? [] : [[name, taken]]
}

function nameOf({ tenant: { organisationId, environment }, walletId, owner, coin, except }: WalletAsset): string {
  return [organisationId, environment, walletId, owner, coin.symbol, except].join(' ')
}

function tenantOf([first]: readonly WalletAsset[]): string {
  return first === undefined ? '' : `${first.tenant.organisationId}/${first.tenant.environment}`
}

/** Reservations under way, and the block up to which deposits are booked. */
interface Rows {
  readonly underWay: UnderWay
  readonly bookedTo: bigint
}

/** The rows of a read, and its fees, which are read meanwhile. */
interface Found extends Rows {
  readonly fees: Promise<OfferedFees>
}

/** Fails as soon as the fees or the rows cannot be read. */
async function readFound(
  deps: Pick<Deps, 'chains' | 'db' | 'deposits'>,
  network: Network,
  assets: readonly WalletAsset[],
): Promise<Found> {
  const fees = deps.chains.on(network).offeredFees()
  const failure = fees.then(() => new Promise<never>(() => undefined))
  return { ...(await Promise.race([readRows(deps, network, assets), failure])), fees }
}

async function readRows(
  deps: Pick<Deps, 'db' | 'deposits'>,
  network: Network,
  assets: readonly WalletAsset[],
): Promise<Rows> {
  const { db, deposits } = deps
  const named = new Map(assets.map(({ owner, coin }) => [`${owner} ${coin.symbol}`, { owner, asset: coin.symbol }]))
  const [underWay, bookedTo] = await Promise.all([
    readUnderWay(db, network.name, [...named.values()]),
    deposits.bookedTo(db, network.name),
  ])
  if (bookedTo !== undefined) return { underWay, bookedTo }
  // A service that has just started books its first block within seconds.
  if (await deposits.isBookedInTime(db, network.name, { block: 0n, msMax: bookingMsMax }))
    return readRows(deps, network, assets)
  throw failChain('chain-unavailable', {}, new Error('no deposits are booked yet'))
}

async function readStates(
  { chains }: Pick<Deps, 'chains'>,
  network: Network,
  assets: readonly WalletAsset[],
  { underWay, bookedTo }: Rows,
): Promise<Omit<Snapshot, 'network' | 'fees'>> {
  const questions = questionsOf(network, assets, underWay)
  const asOf = { atMost: bookedTo }
  const { block, newest, values } = await chains.on(network).stateAt(
    questions.map(({ state }) => state),
    asOf,
  )
  const responses = questions.map((question, index) => ({ ...question, value: values[index] }))
  const byOwner = Map.groupBy(responses, ({ owner }) => owner)
  const states = new Map([...byOwner].map(([owner, own]) => [owner, stateOf(own)]))
  return { block: block.number, blockHash: block.hash, newest, readAt: underWay.readAt, owners: states }
}

/** The nonces and balances of the owners, and the state of what their reservations under way may have used. */
function questionsOf(
  network: Network,
  assets: readonly WalletAsset[],
  { senders, authorizations, allowances }: UnderWay,
): readonly Reading[] {
  const owners = new Map<string, Address>(assets.map(({ owner }) => [owner, owner]))
  const coins = new Map(assets.map(({ owner, coin }) => [`${owner} ${coin.symbol}`, { owner, coin }]))
  const tokens = new Map(network.tokens.map(({ symbol, address }) => [symbol, address]))
  return [
    ...[...owners.values()].flatMap((owner): Reading[] =>
      senders.has(owner) ? [{ owner, state: { account: owner, count: 'transactions' } }] : [],
    ),
    ...[...coins.values()].map(({ owner, coin }): Reading => {
      return { owner, symbol: coin.symbol, state: { account: owner, asset: coin.address ?? 'coin' } }
    }),
    ...authorizations.flatMap(({ seq, owner: name, asset, nonce }): Reading[] => {
      const [token, owner] = [tokens.get(asset), owners.get(name)]
      if (token === undefined || owner === undefined) return []
      return [{ owner, seq, state: { account: owner, token, authorization: bytesToHex(nonce) } }]
    }),
    ...allowances.flatMap(({ seq, owner: name, asset, spender }): Reading[] => {
      const [token, owner] = [tokens.get(asset), owners.get(name)]
      if (token === undefined || owner === undefined) return []
      return [{ owner, seq, state: { account: token, call: encodeAllowance({ owner, spender }) } }]
    }),
  ]
}

interface Reading {
  readonly owner: Address
  readonly state: StateQuestion
  /** Set for a balance. */
  readonly symbol?: string
  /** Set for an authorization and an allowance. */
  readonly seq?: bigint
}

function stateOf(responses: readonly (Reading & { readonly value: bigint | undefined })[]): OwnerState {
  const count = responses.find(({ state }) => 'count' in state)
  if (count !== undefined && count.value === undefined)
    throw failChain('chain-unavailable', {}, new Error('too few nodes agree on a nonce'))
  return {
    nonce: count?.value ?? 0n,
    balances: new Map(responses.flatMap(({ symbol, value }) => (symbol === undefined ? [] : [[symbol, value]]))),
    used: responses.flatMap(({ seq, state, value }) =>
      seq === undefined || value !== 1n || !('authorization' in state) ? [] : [seq],
    ),
    allowed: responses.flatMap(({ seq, state, value }) =>
      seq === undefined || value === undefined || !('call' in state) ? [] : [{ seq, raw: value }],
    ),
  }
}

import { type Address, encodeTransfer, l1FeeOf, type Network } from '@purser/protocol'
import type { Deps } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { newId } from '../../platform/ids.ts'
import type { RecurringTask } from '../../platform/recurring-task.ts'
import { fail } from '../errors.ts'
import type { Chain, ChainPorts } from '../port.ts'
import type { LaneHandler, PlannedTransaction } from './port.ts'
import {
  isAnyUncompared,
  type LaneNonces,
  listUncompared,
  lockUncompared,
  markCompared,
  moveNextNonce,
} from './recovery-store.ts'
import { insertTransactions } from './store.ts'

type ComparingDeps = Deps & Pick<ChainPorts, 'chains' | 'lanes'>
type Work = Pick<ComparingDeps, 'db' | 'chains' | 'clock' | 'random' | 'log' | 'lanes'>

/** Purpose of transactions that only use up a nonce. */
const fillPurpose = 'lanes.fill'
const lanesPerPage = 50
const emptyGas = 50_000n
/** Most nonces of a lane that are filled. Lanes never send further ahead, so a higher count is a node's error or needs an operator. */
const filledMax = 200n

/**
 * After a restore, compares every lane with the chain before it plans anything. Transactions that the database lost may be mined or still pending
 * at nodes. Mined nonces are skipped. Pending nonces are filled with empty transactions at higher fees, so that the lost transactions can never be
 * mined later. A lane plans again when all of that is at the confirmation depth. Idempotent: each lane is decided under its row lock.
 */
export const compareLanes: RecurringTask<ComparingDeps> = {
  name: 'lanes.compare',
  everyMs: 2_000,
  isDue: ({ chains }) => isAnyUncompared(chains.configured.map(({ name }) => name)),
  async run(ctx) {
    if (!ctx.witness.isCurrent()) return
    for (const network of ctx.chains.configured)
      await compareNetwork(ctx, network).catch((error: unknown) =>
        ctx.log.warn({ err: error, network: network.name }, 'lanes could not be compared with the chain; retrying'),
      )
  },
}

/** Does nothing: a mined fill transaction has used its nonce, and a replaced one means that the lost transaction was mined instead. */
export const fillHandler: LaneHandler = {
  purpose: fillPurpose,
  onReplaced: async () => undefined,
  onFinal: async () => undefined,
}

/** Compares the network's lanes that were not compared since the last restore. */
export async function compareNetwork(ctx: Work, network: Network): Promise<void> {
  for (let after = ''; ; ) {
    const senders = await listUncompared(ctx.db, network.name, { after, limit: lanesPerPage })
    if (senders.length > 0) await compareSome(ctx, ctx.chains.on(network), senders)
    after = senders.at(-1) ?? ''
    if (senders.length < lanesPerPage) return
  }
}

async function compareSome(
  ctx: Pick<Work, 'clock' | 'db' | 'lanes' | 'log' | 'random'>,
  chain: Chain,
  senders: readonly Address[],
): Promise<void> {
  const [deep, pending] = [await chain.noncesAt(senders), await chain.pendingNonces(senders)]
  const newest = await newestOf(chain, senders)
  for (const [index, sender] of senders.entries()) {
    const { mined, payable } = newest[index] ?? { mined: 0n, payable: filledMax }
    const { least, most } = pending[index] ?? { least: 0n, most: 0n }
    const paid = (count: bigint): bigint => (count - mined > payable ? mined + payable : count)
    const seen = { deep: deep[index] ?? 0n, mined, pending: paid(least), pendingMax: paid(most) }
    await ctx.db.tx((tx) => compareLane(ctx, tx, chain.network, { sender, seen }))
  }
}

/**
 * Transaction counts of accounts in the newest block of the quorum, and the number of empty transactions that their coin pays for at its base fee. A
 * lane skips all mined nonces, so only the count of the quorum is used. An empty transaction that its account cannot pay would block the lane, and an
 * account that cannot pay for it could not pay for a lost call of more gas either, whatever nodes report as pending. (A lost payment of coin takes
 * less gas. Should it be mined, it takes the nonce of the lane's next transaction, which is then looked for.)
 */
async function newestOf(chain: Chain, senders: readonly Address[]) {
  const counts = senders.map((account) => ({ account, count: 'transactions' }) as const)
  const coins = chain.network.nativeCoin !== null ? senders.map((account) => ({ account, asset: 'coin' }) as const) : []
  const { values } = await chain.stateAt([...counts, ...coins], { finality: { depth: 1 } })
  if (values.includes(undefined)) throw fail('chain-unavailable', {}, new Error('too few nodes agree on an account'))
  const cost = await leastCost(chain)
  return senders.map((_, index) => {
    const coin = values[senders.length + index] ?? 0n
    return { mined: values[index] ?? 0n, payable: cost === undefined ? filledMax : coin / cost }
  })
}

/** In wei, at the base fee, below which none is mined. Undefined on a network without coin. */
async function leastCost(chain: Chain): Promise<bigint | undefined> {
  if (chain.network.nativeCoin === null) return undefined
  const { baseFee, l1Fee } = await chain.offeredFees()
  const cost = emptyGas * baseFee + l1FeeOf(l1Fee, 0)
  return cost > 0n ? cost : 1n
}

/**
 * Transaction counts of an account: at confirmation depth, in the newest block of the quorum, and including pending transactions. A majority of the
 * nodes reports at least `pending`, and a majority reports at most `pendingMax`.
 */
export interface SeenNonces {
  readonly deep: bigint
  readonly mined: bigint
  readonly pending: bigint
  readonly pendingMax: bigint
}

export type Comparison =
  | { readonly outcome: 'compared' }
  | { readonly outcome: 'wait' }
  | { readonly outcome: 'too-many' }
  | { readonly outcome: 'disputed' }
  | { readonly outcome: 'fill'; readonly nonces: readonly bigint[]; readonly nextNonce: bigint }

/**
 * The work that is required before the lane can plan. If half of the nodes report transactions that the others do not have, the lane waits: filling
 * nonces that one node invented costs fees, and planning over a lost transaction that one node hides could pay twice.
 */
export function comparisonOf(lane: LaneNonces, seen: SeenNonces): Comparison {
  const known = seen.pending > seen.mined ? seen.pending : seen.mined
  if (seen.pendingMax > known && seen.pendingMax > lane.nextNonce) return { outcome: 'disputed' }
  if (known > lane.nextNonce) {
    const first = seen.mined > lane.nextNonce ? seen.mined : lane.nextNonce
    if (known - first > filledMax) return { outcome: 'too-many' }
    const nonces = Array.from({ length: Number(known - first) }, (_, index) => first + BigInt(index))
    return { outcome: 'fill', nonces, nextNonce: known }
  }
  return lane.isFilling || seen.deep < lane.lowestOpen ? { outcome: 'wait' } : { outcome: 'compared' }
}

/** Log messages while a lane cannot be compared. */
const faults: ReadonlyMap<Comparison['outcome'], string> = new Map([
  ['too-many', 'nodes report far more transactions than an account sends'],
  ['disputed', 'half of the nodes report pending transactions that the others do not have; the account waits'],
])

async function compareLane(
  ctx: Pick<Work, 'clock' | 'lanes' | 'log' | 'random'>,
  tx: Tx,
  network: Network,
  { sender, seen }: { readonly sender: Address; readonly seen: SeenNonces },
): Promise<void> {
  const lane = { network: network.name, sender }
  const place = await lockUncompared(tx, lane, fillPurpose)
  if (place === undefined) return
  const comparison = comparisonOf(place, seen)
  if (comparison.outcome === 'compared') return markCompared(tx, lane)
  const details = { ...lane, nextNonce: place.nextNonce.toString(), ...textOf(seen) }
  const fault = faults.get(comparison.outcome)
  if (fault !== undefined) ctx.log.error(details, fault)
  if (comparison.outcome !== 'fill') return
  ctx.log.warn(details, 'transactions that the database lost are skipped or replaced')
  await moveNextNonce(tx, lane, comparison.nextNonce)
  const planned = emptyTransaction(network, sender)
  const fills = comparison.nonces.map((nonce) => {
    return { id: newId('ctx', ctx), lane, nonce, createdAt: ctx.clock.now(), planned }
  })
  if (fills.length === 0) return
  await insertTransactions(tx, fills)
  tx.afterCommit(() => ctx.lanes.notify(network))
}

/** A transaction that only uses a nonce. On a network without a native coin it transfers zero of the token that pays its fee. */
function emptyTransaction(network: Network, sender: Address): PlannedTransaction {
  const [token] = network.tokens
  if (network.nativeCoin !== null || token === undefined)
    return { network, to: sender, data: '0x', value: 0n, gasLimit: emptyGas, purpose: fillPurpose }
  const data = encodeTransfer(sender, 0n)
  return {
    network,
    to: token.address,
    data,
    value: 0n,
    gasLimit: 1_000_000n,
    feeToken: token.address,
    purpose: fillPurpose,
  }
}

function textOf(seen: SeenNonces) {
  return Object.fromEntries(Object.entries(seen).map(([name, count]) => [name, String(count)]))
}

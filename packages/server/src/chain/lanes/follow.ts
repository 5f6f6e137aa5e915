import type { Address, Hex } from '@purser/protocol'
import type { Tx } from '../../platform/db/db.ts'
import { inParallel } from '../../platform/in-parallel.ts'
import { fencedTx } from '../../platform/leases/store.ts'
import type { NodeVerdict, Receipt } from '../port.ts'
import type { Handlers, LaneTransaction, MinedTransaction } from './port.ts'
import { markReorganized } from './recovery-store.ts'
import { handlerOf, logNotFollowed, searchReplaced } from './replaced.ts'
import { fillGap } from './resume.ts'
import {
  type Attempts,
  attemptsOf,
  broadcast,
  isolateFailures,
  type LaneParts,
  replace,
  toLaneTransaction,
} from './send.ts'
import { type LaneTransactionRow, listOpen, markMined } from './store.ts'

/** A transaction that is not mined within this many block times is replaced at a higher fee. */
const stuckBlocks = 5
const rebroadcastMs = 3_000
/** Transactions without a receipt that are processed at the same time. */
const missingAtOnce = 4
/** Least milliseconds that a node may lag. */
const lagMsMin = 120_000

/**
 * Reads the receipts of the transactions that these accounts sent, advances each transaction to the state on chain, and rebroadcasts those that are
 * not mined. Every step commits before the next begins and depends only on stored rows, so another process can continue after a crash at any point.
 * Returns how many transactions are open. May run while the same accounts send more; the next pass follows those.
 */
export async function followLanes(parts: LaneParts, senders: readonly Address[]): Promise<number> {
  const counts = await isolateFailures(parts, senders, async (some) => [await followReceipts(parts, some)])
  return counts.reduce((sum, count) => sum + count, 0)
}

async function followReceipts(parts: LaneParts, senders: readonly Address[]): Promise<number> {
  const open = await listOpen(parts.deps.db, parts.chain.network.name, senders)
  const sent = open.filter(({ status, lastBroadcastAt }) => status === 'mined' || lastBroadcastAt !== null)
  if (sent.length === 0) return open.length
  const attempts = await attemptsOf(parts, sent)
  parts.overdue.report(sent, attempts)
  const hashes = sent.flatMap(({ id }) => (attempts.get(id) ?? []).map(({ hash }) => ({ id, hash })))
  const { receipts, head, transactionCounts } = await parts.chain.watch(
    [...new Set(sent.map(({ sender }) => sender))],
    hashes.map(({ hash }) => hash),
  )
  const countOf = ({ sender }: LaneTransactionRow) => transactionCounts.get(sender) ?? 0n
  const { found, unread } = receiptsById(hashes, receipts)
  const known = sent.flatMap((transaction) => {
    const receipt = found.get(transaction.id)
    // A receipt for a nonce that the chain has not reached is inconsistent.
    const isReached = countOf(transaction) > transaction.nonce
    return receipt === undefined || !isReached || receipt.blockNumber > head.number ? [] : [{ transaction, receipt }]
  })
  const { closed, unconfirmed } = await advanceAll(parts, known, head.number)
  // A receipt that only one node shows is none: otherwise that node could keep a transaction from being sent again.
  const shown = new Set(known.flatMap(({ transaction: { id } }) => (unconfirmed.has(id) ? [] : [id])))
  for (const id of shown) parts.usedSince.delete(id)
  // A transaction whose receipt no node delivers is neither missing nor known: it waits, and others are followed.
  const missing = sent.filter(
    ({ id }) => !shown.has(id) && (found.has(id) || !unread.has(id)) && !parts.searches.isRunning(id),
  )
  const counted = missing.filter((transaction) => countOf(transaction) > transaction.nonce)
  const losses = await lossesOf(parts, counted, attempts)
  const agreedCount = oncePerSender((sender) => parts.chain.transactionCount(sender))
  await inParallel(missing, missingAtOnce, (transaction) => {
    const seen = { attempts, losses, transactionCount: countOf(transaction), head: head.number, agreedCount }
    return followMissing(parts, transaction, seen).catch((error: unknown) => logNotFollowed(parts, transaction, error))
  })
  await fillGaps(parts, open, transactionCounts)
  return open.length - closed
}

/** Queries once for each sender, and only when the number is needed. */
function oncePerSender(read: (sender: Address) => Promise<bigint>): (sender: Address) => Promise<bigint> {
  const known = new Map<Address, Promise<bigint>>()
  return (sender) => {
    const count = known.get(sender) ?? read(sender)
    known.set(sender, count)
    return count
  }
}

/** The receipts by the ids of their transactions, and the ids of those whose receipt no node delivers. */
function receiptsById(
  hashes: readonly { readonly id: string }[],
  receipts: readonly (Receipt | 'unread' | undefined)[],
) {
  const found = new Map<string, Receipt>()
  const unread = new Set<string>()
  hashes.forEach(({ id }, index) => {
    const receipt = receipts[index]
    if (receipt === 'unread') unread.add(id)
    else if (receipt !== undefined) found.set(id, receipt)
  })
  return { found, unread }
}

async function fillGaps(
  parts: LaneParts,
  open: readonly LaneTransactionRow[],
  transactionCounts: ReadonlyMap<Address, bigint>,
): Promise<void> {
  for (const [sender, [lowest]] of Map.groupBy(open, (one) => one.sender)) {
    const count = transactionCounts.get(sender)
    if (lowest !== undefined && count !== undefined && count < lowest.nonce)
      await fillGap(parts, { network: lowest.network, sender }, lowest.nonce)
  }
}

/** The chain as a pass of the lane saw it. */
interface Seen {
  readonly attempts: Attempts
  readonly losses: Losses
  /** As the preferred node counts. */
  readonly transactionCount: bigint
  readonly head: bigint
  /** As a majority of the nodes counts now. */
  readonly agreedCount: (sender: Address) => Promise<bigint>
}

/** Handles a transaction that was in a block and has no receipt now: returns it to be sent if the chain has lost it. */
async function followMined(parts: LaneParts, transaction: LaneTransactionRow, seen: Seen): Promise<void> {
  const { attempts, losses, transactionCount, head } = seen
  const hashes = hashesOf(attempts, transaction)
  const depth = head - (transaction.minedBlock ?? head) + 1n
  if (depth >= BigInt(parts.chain.network.confirmationDepth) && (await advanceByOthers(parts, transaction, hashes)))
    return
  // A node that counts the nonce but has no receipt is indexing late, unless another transaction used it after a reorganization. A node without the
  // transaction may be the only one, so the quorum decides.
  const isGone =
    transactionCount > transaction.nonce
      ? hasLongBeenLost(parts, transaction, losses)
      : (await parts.chain.isInNoBlock(hashes)) === 'yes'
  return isGone ? returnToSent(parts, transaction) : undefined
}

function hashesOf(attempts: Attempts, { id }: LaneTransactionRow): readonly Hex[] {
  return (attempts.get(id) ?? []).map(({ hash }) => hash)
}

/** Handles a transaction without a receipt for any of its hashes: waits, rebroadcasts the same bytes, or raises the fee after waiting too long. */
async function followMissing(parts: LaneParts, transaction: LaneTransactionRow, seen: Seen): Promise<void> {
  if (transaction.status === 'mined') return followMined(parts, transaction, seen)
  const { attempts, losses, transactionCount, agreedCount } = seen
  const hashes = hashesOf(attempts, transaction)
  const now = parts.deps.clock.now().getTime()
  const latest = attempts.get(transaction.id)?.at(-1)
  if (latest === undefined) return
  const searchIfLost = (known: Losses): boolean => {
    const isLost = hasLongBeenLost(parts, transaction, known)
    if (isLost) parts.searches.begin(transaction, (search) => searchReplaced(parts, transaction, latest, search))
    return isLost
  }
  if (transactionCount > transaction.nonce && searchIfLost(losses)) return
  if (now - (transaction.lastBroadcastAt?.getTime() ?? 0) <= rebroadcastMs) return
  if (await advanceByOthers(parts, transaction, hashes)) return
  const [response] = await broadcast(parts, [transaction], attempts)
  // Most nodes say that the nonce is used, though the preferred one does not count it.
  const isTooLow = response?.outcome === 'nonce-too-low' && transactionCount <= transaction.nonce
  if (isTooLow && searchIfLost(await lossesOf(parts, [transaction], attempts))) return
  // A higher fee helps only the lowest pending nonce, and only when the nodes accept the transaction.
  const stuckMs = Math.max(parts.chain.network.blockTimeMs * stuckBlocks, 10_000)
  if (now - latest.createdAt.getTime() <= stuckMs || response?.outcome !== 'sent') return
  if ((await agreedCount(transaction.sender)) === transaction.nonce) await replace(parts, transaction, latest)
}

/** Searches the other nodes for a receipt that the preferred node does not return. Returns whether a majority confirms it. */
async function advanceByOthers(
  parts: LaneParts,
  transaction: LaneTransactionRow,
  hashes: readonly Hex[],
): Promise<boolean> {
  for (const seen of await parts.chain.findReceipts(hashes)) {
    if (seen === undefined) continue
    const { unconfirmed } = await advanceAll(parts, [{ transaction, receipt: seen.receipt }], seen.head.number)
    if (unconfirmed.size === 0) return true
  }
  return false
}

/** Handles a reorganized block: calls the handler in the database transaction that schedules the same bytes for sending. */
function returnToSent({ deps, handlers, leased }: LaneParts, transaction: LaneTransactionRow): Promise<void> {
  return fencedTx(deps.db, leased, async (tx) => {
    if ((await markReorganized(tx, leased, transaction.id)) === 0) return
    await notifyReorganized(handlers, tx, toLaneTransaction(transaction, transaction.minedHash ?? '0x'))
  })
}

/** Most transactions whose receipts one database transaction stores. */
const closedAtOnce = 50

type AdvanceParts = Pick<LaneParts, 'deps' | 'chain' | 'handlers' | 'leased' | 'searches'>

interface Found {
  readonly transaction: LaneTransactionRow
  readonly receipt: Receipt
}

/** The number of transactions that are now final, and the ids of those whose receipts the quorum does not confirm. */
interface Advanced {
  readonly closed: number
  readonly unconfirmed: ReadonlySet<string>
}

/** Stores receipts in batches. A transaction that cannot be stored does not block others. */
async function advanceAll(parts: AdvanceParts, known: readonly Found[], head: bigint): Promise<Advanced> {
  const wanted = known.filter(({ transaction: { status, minedBlock }, receipt }) => {
    return status !== 'mined' || minedBlock !== receipt.blockNumber || isFinal(parts, receipt, head)
  })
  const news = await confirmed(parts, wanted, head)
  const unconfirmed = new Set(wanted.filter((one) => !news.includes(one)).map(({ transaction }) => transaction.id))
  let closed = 0
  for (let from = 0; from < news.length; from += closedAtOnce) {
    const some = news.slice(from, from + closedAtOnce)
    closed += await advance(parts, some, head).catch(() => advanceEach(parts, some, head))
  }
  return { closed, unconfirmed }
}

/**
 * The receipts that the quorum confirms: at confirmation depth when the head indicates it, otherwise at depth 1. The next pass reads the others
 * again.
 */
async function confirmed(parts: AdvanceParts, news: readonly Found[], head: bigint): Promise<Found[]> {
  const { deps, chain } = parts
  const groups = Map.groupBy(news, ({ receipt }) =>
    isFinal(parts, receipt, head) ? chain.network.confirmationDepth : 1,
  )
  const agreed = await Promise.all(
    [...groups].map(async ([depth, some]) => {
      const verdicts = await chain.confirmReceipts(
        some.map(({ receipt }) => receipt),
        { depth },
      )
      return some.filter((_, index) => verdicts[index] === 'yes')
    }),
  )
  if (agreed.flat().length < news.length)
    deps.log.warn({ network: chain.network.name }, 'nodes do not agree on a receipt yet; it will be read again')
  return agreed.flat()
}

async function advanceEach(parts: AdvanceParts, some: readonly Found[], head: bigint): Promise<number> {
  let closed = 0
  for (const one of some)
    closed += await advance(parts, [one], head).catch((error: unknown) => {
      logNotFollowed(parts, one.transaction, error)
      return 0
    })
  return closed
}

function isFinal({ chain: { network } }: AdvanceParts, { blockNumber }: Receipt, head: bigint): boolean {
  return head - blockNumber + 1n >= BigInt(network.confirmationDepth)
}

/** Skips transactions that are already closed or whose shard another process has leased. */
function advance(parts: AdvanceParts, some: readonly Found[], head: bigint): Promise<number> {
  const { deps, handlers, leased, searches } = parts
  searches.end(some.map(({ transaction }) => transaction.id))
  return fencedTx(deps.db, leased, async (tx) => {
    const found = new Map(
      some.map(({ transaction: { id }, receipt }) => [id, { id, receipt, isFinal: isFinal(parts, receipt, head) }]),
    )
    const before = await markMined(tx, leased, [...found.values()])
    const mined = before.flatMap((row) => {
      const one = found.get(row.id)
      if (one === undefined) return []
      const transaction = toLaneTransaction(row, one.receipt.transactionHash)
      const isNews = row.status !== 'mined' || row.minedBlock !== one.receipt.blockNumber
      return [{ ...one, transaction, isNews }]
    })
    if (mined.length === 0) return 0
    await notifyMined(handlers, tx, mined)
    return mined.filter((one) => one.isFinal).length
  })
}

async function notifyReorganized(handlers: Handlers, tx: Tx, gone: LaneTransaction): Promise<void> {
  await handlers.get(gone.purpose)?.onReorganized?.(tx, [gone])
}

/** `isNews`: the handler was not called for that block yet. */
interface Observed extends MinedTransaction {
  readonly isNews: boolean
  readonly isFinal: boolean
}

/** Calls the handlers of mined transactions: first for new blocks, then for transactions that are final. */
async function notifyMined(handlers: Handlers, tx: Tx, mined: readonly Observed[]): Promise<void> {
  for (const [purpose, some] of Map.groupBy(mined, ({ transaction }) => transaction.purpose)) {
    const handler = handlerOf(handlers, purpose)
    const atOnce = handler.onMinedAndFinal === undefined ? [] : some.filter(({ isNews, isFinal }) => isNews && isFinal)
    const others = some.filter((one) => !atOnce.includes(one))
    const [news, final] = [others.filter(({ isNews }) => isNews), others.filter(({ isFinal }) => isFinal)]
    if (news.length > 0) await handler.onMined?.(tx, news)
    if (atOnce.length > 0) await handler.onMinedAndFinal?.(tx, atOnce)
    if (final.length > 0) await handler.onFinal(tx, final)
  }
}

/** Verdicts of a quorum on the nonces of transactions, by their ids. */
type Losses = ReadonlyMap<string, NodeVerdict>

/**
 * Queries the quorum once for all transactions that are missing though a node counts their nonces: in a burst, nodes count many before they have the
 * receipts. Leaves out those that it found lost not long ago.
 */
async function lossesOf(parts: LaneParts, counted: readonly LaneTransactionRow[], attempts: Attempts): Promise<Losses> {
  const due = counted.filter(({ id }) => !isRecentlyLost(parts, id))
  const questions = due.map(({ id, sender, nonce }) => {
    return { sender, nonce, hashes: (attempts.get(id) ?? []).map(({ hash }) => hash) }
  })
  const verdicts = await parts.chain.areNoncesLost(questions)
  return new Map(due.map(({ id }, index) => [id, verdicts[index] ?? 'undecided']))
}

/** Whether a quorum found the transaction lost, but not for longer than a node may lag. */
function isRecentlyLost({ usedSince, chain, deps }: LaneParts, id: string): boolean {
  const { blockTimeMs, confirmationDepth } = chain.network
  const since = usedSince.get(id)
  const lagMs = Math.max(lagMsMin, blockTimeMs * confirmationDepth * 4)
  return since !== undefined && deps.clock.now().getTime() - since <= lagMs
}

/**
 * Whether a quorum finds the nonce used without a receipt of ours, and found so before, longer ago than a node may lag. Counted from the first such
 * finding, not from the transaction's creation, because it may have waited long before it could be sent. One node neither begins nor ends the time.
 */
function hasLongBeenLost({ usedSince, deps }: LaneParts, { id }: LaneTransactionRow, losses: Losses): boolean {
  const since = usedSince.get(id)
  const verdict = losses.get(id)
  if (verdict === 'no') usedSince.delete(id)
  if (verdict === 'yes' && since === undefined) usedSince.set(id, deps.clock.now().getTime())
  return verdict === 'yes' && since !== undefined
}

import type { Address, Hex } from '@purser/protocol'
import { fencedTx } from '../../platform/leases/store.ts'
import type { Receipt } from '../port.ts'
import { advanceAll } from './finalize.ts'
import { notifyReorganised, toLaneTransaction } from './handlers.ts'
import { inParallel, isolateFailures, type LaneParts, logNotFollowed } from './parts.ts'
import { resolveReplaced } from './replaced.ts'
import { fillGap } from './resume.ts'
import { type Attempts, attemptsOf, broadcast, replace } from './send.ts'
import { listOpen, markReorganised, type TransactionRow } from './store.ts'

/** A transaction without a block for so many block times is offered again at a higher fee. */
const stuckBlocks = 5
const rebroadcastMs = 3_000
const replacedMsMin = 120_000
/** Transactions without a receipt that are looked after at the same time. */
const missingAtOnce = 4

/**
 * Looks for the receipts of what these accounts sent, moves each transaction as far as the chain says, and sends again what no block took. Every
 * step commits before the next begins and is taken from the rows alone, so a process that dies anywhere is followed by another that goes on.
 * Returns how many transactions are open. May run while others of the same accounts are sent: those are left for the next time.
 */
export async function followLanes(parts: LaneParts, senders: readonly Address[]): Promise<number> {
  const counts = await isolateFailures(parts, senders, async (some) => [await followReceipts(parts, some)])
  return counts.reduce((sum, count) => sum + count, 0)
}

async function followReceipts(parts: LaneParts, senders: readonly Address[]): Promise<number> {
  const { chain } = parts
  const open = await listOpen(parts.deps.db, chain.network.name, senders)
  const sent = open.filter(({ status, lastBroadcastAt }) => status === 'mined' || lastBroadcastAt !== null)
  if (sent.length === 0) return open.length
  const attempts = await attemptsOf(parts, sent)
  const hashes = sent.flatMap((transaction) =>
    (attempts.get(transaction.id) ?? []).map(({ hash }) => ({ transaction, hash })),
  )
  const { receipts, head, transactionCounts } = await chain.watch(
    [...new Set(sent.map(({ sender }) => sender))],
    hashes.map(({ hash }) => hash),
  )
  const countOf = ({ sender }: TransactionRow) => transactionCounts.get(sender) ?? 0n
  const found = new Map<string, Receipt>()
  hashes.forEach(({ transaction }, index) => {
    const receipt = receipts[index]
    if (receipt !== undefined) found.set(transaction.id, receipt)
  })
  const known = sent.flatMap((transaction) => {
    const receipt = found.get(transaction.id)
    // A receipt of a nonce that the chain has not come to is of no block: it is looked at again.
    if (receipt === undefined || countOf(transaction) <= transaction.nonce || receipt.blockNumber > head.number)
      return []
    parts.usedSince.delete(transaction.id)
    return [{ transaction, receipt }]
  })
  const closed = await advanceAll(parts, known, head.number)
  const missing = sent.filter(({ id }) => !found.has(id))
  await inParallel(missing, missingAtOnce, (transaction) =>
    followMissing(parts, transaction, { attempts, transactionCount: countOf(transaction), head: head.number }).catch(
      (error: unknown) => logNotFollowed(parts, transaction, error),
    ),
  )
  await fillGaps(parts, open, transactionCounts)
  return open.length - closed
}

async function fillGaps(
  parts: LaneParts,
  open: readonly TransactionRow[],
  transactionCounts: ReadonlyMap<Address, bigint>,
): Promise<void> {
  for (const [sender, [lowest]] of Map.groupBy(open, (one) => one.sender)) {
    const count = transactionCounts.get(sender)
    if (lowest !== undefined && count !== undefined && count < lowest.nonce)
      await fillGap(parts, { network: lowest.network, sender }, { count, lowest: lowest.nonce })
  }
}

/** No receipt for any of its hashes: waits, sends the same bytes again, or offers more when it has waited too long. */
async function followMissing(
  parts: LaneParts,
  transaction: TransactionRow,
  seen: { readonly attempts: Attempts; readonly transactionCount: bigint; readonly head: bigint },
): Promise<void> {
  const { attempts, transactionCount, head } = seen
  const { clock } = parts.deps
  const hashes = (attempts.get(transaction.id) ?? []).map(({ hash }) => hash)
  if (transaction.status === 'mined') {
    const depth = head - (transaction.minedBlock ?? head) + 1n
    if (depth >= BigInt(parts.chain.network.confirmationDepth) && (await advanceByOthers(parts, transaction, hashes)))
      return
    // A node that counts it and has no receipt is merely behind itself; one that knows nothing of it may be alone.
    if (transactionCount > transaction.nonce || (await parts.chain.isInNoBlock(hashes)) !== 'yes') return
    return returnToSent(parts, transaction)
  }
  const now = clock.now().getTime()
  const latest = attempts.get(transaction.id)?.at(-1)
  if (transactionCount <= transaction.nonce) parts.usedSince.delete(transaction.id)
  else if (latest !== undefined && hasLongBeenUsed(parts, transaction, now)) {
    if ((await parts.chain.isNonceLost(transaction.sender, transaction.nonce, hashes)) === 'yes')
      return resolveReplaced(parts, transaction, latest).finally(() => parts.usedSince.delete(transaction.id))
  }
  if (latest === undefined || now - (transaction.lastBroadcastAt?.getTime() ?? 0) <= rebroadcastMs) return
  await advanceByOthers(parts, transaction, hashes)
  const [answer] = await broadcast(parts, [transaction], attempts)
  // Only the lowest nonce that the chain waits for can be helped by a higher fee, and only when fees are what it lacks.
  const stuckMs = Math.max(parts.chain.network.blockTimeMs * stuckBlocks, 10_000)
  const isStuck = now - latest.createdAt.getTime() > stuckMs && transactionCount === transaction.nonce
  if (isStuck && answer?.outcome === 'sent') await replace(parts, transaction, latest)
}

/** The node that is used first may hide a receipt. Another may have it, and a majority confirms it. Returns whether one has it. */
async function advanceByOthers(
  parts: LaneParts,
  transaction: TransactionRow,
  hashes: readonly Hex[],
): Promise<boolean> {
  const seen = (await parts.chain.findReceipts(hashes)).find((found) => found !== undefined)
  if (seen !== undefined) await advanceAll(parts, [{ transaction, receipt: seen.receipt }], seen.head.number)
  return seen !== undefined
}

/** Its block is gone: its handler is called in the transaction that has the same bytes sent again. */
function returnToSent({ deps, handlers, held }: LaneParts, transaction: TransactionRow): Promise<void> {
  return fencedTx(deps.db, held, async (tx) => {
    if ((await markReorganised(tx, held, transaction.id)) === 0) return
    await notifyReorganised(handlers, tx, toLaneTransaction(transaction, transaction.minedHash ?? '0x'))
  })
}

/**
 * Whether the nonce has been used, with no receipt of ours, for longer than a node lags. Counted from when that was first seen and
 * not from when the transaction was made, which may have waited long before it could be sent at all.
 */
function hasLongBeenUsed({ usedSince, chain }: LaneParts, transaction: TransactionRow, now: number): boolean {
  const { blockTimeMs, confirmationDepth } = chain.network
  const since = usedSince.get(transaction.id) ?? now
  usedSince.set(transaction.id, since)
  return now - since > Math.max(replacedMsMin, blockTimeMs * confirmationDepth * 4)
}

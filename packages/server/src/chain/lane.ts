import type { Address } from '@purser/protocol'
import type { Deps } from '../platform/ctx.ts'
import { advanceAll, notFollowed } from './lane-advance.ts'
import { type Attempts, attemptsOf, broadcast, cannotGoOn, replace, sendAgain, signPlanned } from './lane-send.ts'
import {
  type AttemptRow,
  findNextNonce,
  type LaneKey,
  listFinalRaw,
  listOpen,
  listUnsent,
  lockTransaction,
  markFinal,
  markReorganised,
  markUnsent,
  type TransactionRow,
} from './lane-store.ts'
import { handlerOf, told } from './lane-tell.ts'
import type { Chain, FeeSponsor, LaneHandler, LaneSigner, Receipt } from './port.ts'

export interface LaneParts {
  readonly deps: Pick<Deps, 'db' | 'clock' | 'log' | 'metrics'>
  readonly chain: Chain
  /** Who signs for an account whose lane this is. */
  readonly signerOf: (account: Address) => LaneSigner
  /** Pays the fees of what is planned as sponsored; a lane without one sends nothing of that kind. */
  readonly sponsor?: FeeSponsor | undefined
  readonly handlers: ReadonlyMap<string, LaneHandler>
  /** When this process first saw the nonce of a transaction used, without a receipt of ours: milliseconds by its id. */
  readonly usedSince: Map<string, number>
}

/** A transaction without a block for so many block times is offered again at a higher fee. */
const stuckBlocks = 5
const rebroadcastMs = 3_000
const displacedMsMin = 120_000
/** Accounts that are passed over one by one, at the same time, where it failed for all of them together. */
const apartAtOnce = 8
/** Transactions that are signed and sent at once. */
const sentAtOnce = 64
/** Transactions without a receipt that are looked after at the same time. */
const soughtAtOnce = 4

/**
 * One pass over a lane: signs what is planned, sends what is signed, looks for what is mined, and closes what is final.
 * Every step commits before the next begins and is taken from the rows alone, so a pass that dies anywhere is simply
 * followed by another: bytes are stored before they are sent, and sending again sends the same bytes.
 * Answers how many transactions are still open.
 */
export async function passLane(parts: LaneParts, { network, sender }: LaneKey): Promise<number> {
  const open = await listOpen(parts.deps.db, network, [sender])
  if (open.length === 0) return 0
  if (open.some(({ status, lastBroadcastAt }) => status !== 'mined' && lastBroadcastAt === null))
    await sendLanes(parts, [sender])
  return followLanes(parts, [sender])
}

/** The first half of a pass, over the lanes of several accounts: signs and sends. Answers whose transactions went out. */
export async function sendLanes(parts: LaneParts, senders: readonly Address[]): Promise<ReadonlySet<Address>> {
  return new Set(await apart(parts, senders, (some) => sendFor(parts, some)))
}

async function sendFor(parts: LaneParts, senders: readonly Address[]): Promise<Address[]> {
  const sent: Address[] = []
  for (let isMore = true; isMore; ) {
    const unsent = await listUnsent(parts.deps.db, parts.chain.network.name, senders, sentAtOnce)
    await sendAgain(parts, unsent)
    const signed = await signPlanned(parts, unsent)
    sent.push(...unsent.map(({ transaction: { sender } }) => sender))
    isMore = unsent.length === sentAtOnce && signed > 0
  }
  return sent
}

/**
 * The second half: looks after what was sent. Both may run at once, each once: what is being sent meanwhile is left for the next time. Answers
 * how many transactions are open.
 */
export async function followLanes(parts: LaneParts, senders: readonly Address[]): Promise<number> {
  const counts = await apart(parts, senders, async (some) => [await followFor(parts, some)])
  return counts.reduce((sum, count) => sum + count, 0)
}

async function followFor(parts: LaneParts, senders: readonly Address[]): Promise<number> {
  const open = await listOpen(parts.deps.db, parts.chain.network.name, senders)
  const sent = open.filter(({ status, lastBroadcastAt }) => status === 'mined' || lastBroadcastAt !== null)
  return followReceipts(parts, { open, sent, attempts: await attemptsOf(parts, sent) })
}

/** Together; where that fails, each account by itself, so that one keeps no other. What fails for one that is alone is thrown. */
async function apart<T>(
  parts: LaneParts,
  senders: readonly Address[],
  work: (senders: readonly Address[]) => Promise<readonly T[]>,
): Promise<readonly T[]> {
  try {
    return await work(senders)
  } catch (error) {
    if (senders.length === 1) throw error
    const waiting = [...senders]
    const done: T[] = []
    const workers = Array.from({ length: Math.min(apartAtOnce, waiting.length) }, async () => {
      for (let sender = waiting.pop(); sender !== undefined; sender = waiting.pop())
        done.push(...(await work([sender]).catch(cannotGoOn(parts, sender))))
    })
    await Promise.all(workers)
    return done
  }
}

/**
 * What a process does when a lane becomes its own: everything without an outcome is sent again at once, whatever the one
 * before it had said, and a chain that went back behind what was final (a dev chain after a crash) gets those bytes again.
 */
export async function resumeLane(parts: LaneParts, lane: LaneKey): Promise<void> {
  const { db } = parts.deps
  const nextNonce = await findNextNonce(db, lane)
  if (nextNonce === undefined) return
  await markUnsent(db, lane)
  const lowest = (await listOpen(db, lane.network, [lane.sender]))[0]?.nonce ?? nextNonce
  const count = await parts.chain.transactionCount(lane.sender, 'latest')
  if (count < lowest) await fillGap(parts, lane, count, lowest)
}

/** Looks for the receipt of every hash ever signed at the open nonces, and moves each transaction as far as the chain says. */
async function followReceipts(
  parts: LaneParts,
  {
    open,
    sent,
    attempts,
  }: {
    readonly open: readonly TransactionRow[]
    readonly sent: readonly TransactionRow[]
    readonly attempts: Attempts
  },
): Promise<number> {
  const { chain } = parts
  if (sent.length === 0) return open.length
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
  const lost = sent.filter(({ id }) => !found.has(id)).reverse()
  const workers = Array.from({ length: Math.min(soughtAtOnce, lost.length) }, async () => {
    for (let next = lost.pop(); next !== undefined; next = lost.pop()) {
      const transaction = next
      await missing(parts, transaction, { attempts, transactionCount: countOf(transaction) }).catch((error: unknown) =>
        notFollowed(parts, transaction, error),
      )
    }
  })
  await Promise.all(workers)
  for (const [lowest] of Map.groupBy(open, ({ sender }) => sender).values())
    if (lowest !== undefined && transactionCounts.has(lowest.sender) && countOf(lowest) < lowest.nonce)
      await fillGap(parts, lowest, countOf(lowest), lowest.nonce)
  return open.length - closed
}

/** No receipt for any of its hashes: wait, send the same bytes again, or offer more when it has waited too long. */
async function missing(
  parts: LaneParts,
  transaction: TransactionRow,
  seen: { readonly attempts: Attempts; readonly transactionCount: bigint },
): Promise<void> {
  const { attempts, transactionCount } = seen
  const { clock } = parts.deps
  // A node that counts it and has no receipt is merely behind itself.
  if (transaction.status === 'mined')
    return transactionCount > transaction.nonce ? undefined : reorganised(parts, transaction)
  const now = clock.now().getTime()
  const latest = attempts.get(transaction.id)?.at(-1)
  if (transactionCount <= transaction.nonce) parts.usedSince.delete(transaction.id)
  else if (latest !== undefined && hasLongBeenUsed(parts, transaction, now)) {
    const hashes = (attempts.get(transaction.id) ?? []).map(({ hash }) => hash)
    if (await parts.chain.isNonceLost(transaction.sender, transaction.nonce, hashes))
      return displace(parts, transaction, latest)
  }
  if (latest === undefined || now - (transaction.lastBroadcastAt?.getTime() ?? 0) <= rebroadcastMs) return
  const [answer] = await broadcast(parts, [transaction], attempts)
  // Only the lowest nonce that the chain waits for can be helped by a higher fee, and only when fees are what it lacks.
  const stuckMs = Math.max(parts.chain.network.blockTimeMs * stuckBlocks, 10_000)
  const isStuck = now - latest.createdAt.getTime() > stuckMs && transactionCount === transaction.nonce
  if (isStuck && answer?.outcome === 'sent') await replace(parts, transaction, latest)
}

/** Its block is gone: its feature is told in the transaction that has the same bytes sent again. */
function reorganised({ deps, handlers }: LaneParts, transaction: TransactionRow): Promise<void> {
  return deps.db.tx(async (tx) => {
    if ((await markReorganised(tx, transaction.id)) === 0) return
    const hash = transaction.minedHash ?? '0x'
    await handlers.get(transaction.purpose)?.onReorganised?.(tx, { ...told(transaction), hash })
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
  return now - since > Math.max(displacedMsMin, blockTimeMs * confirmationDepth * 4)
}

/** Closes a transaction whose nonce somebody else used, and lets its feature find out what that means. */
async function displace(parts: LaneParts, transaction: TransactionRow, latest: AttemptRow): Promise<void> {
  const handler = handlerOf(parts.handlers, transaction)
  parts.deps.log.error(
    { network: transaction.network, sender: transaction.sender, nonce: transaction.nonce.toString() },
    'a nonce was used outside its lane',
  )
  await parts.deps.db.tx(async (tx) => {
    const locked = await lockTransaction(tx, transaction.id)
    if (locked.status !== 'sent') return
    await markFinal(tx, transaction.id)
    await handler.onDisplaced(tx, { ...told(transaction), hash: latest.hash })
  })
  parts.usedSince.delete(transaction.id)
}

/** When the chain is behind nonces that were final (a deep reorganisation, a dev chain restored from a copy), their bytes go out again. */
async function fillGap(parts: LaneParts, lane: LaneKey, chainNonce: bigint, lowest: bigint): Promise<void> {
  const { db, log } = parts.deps
  log.warn(
    { network: lane.network, chainNonce: chainNonce.toString(), ours: lowest.toString() },
    'the chain is behind the lane; stored transactions are sent again',
  )
  await parts.chain.send((await listFinalRaw(db, lane, chainNonce)).map(({ raw }) => raw))
}

import type { Hex, Network } from '@purser/protocol'
import type { Deps } from '../platform/ctx.ts'
import { pause } from '../platform/work/runner.ts'
import { affordableFees } from './affordable.ts'
import { type Fees, feeLimits, replacementFees } from './fees.ts'
import { advanceAll, notFollowed } from './lane-advance.ts'
import { signForm } from './lane-form.ts'
import {
  type AttemptRow,
  findNextNonce,
  insertAttempts,
  type LaneKey,
  listAttempts,
  listCallData,
  listEarlierRaw,
  listFinalRaw,
  listLatestRaw,
  listOpen,
  lockTransaction,
  markBroadcast,
  markFinal,
  markReorganised,
  markUnsent,
  type TransactionRow,
} from './lane-store.ts'
import { handlerOf, tellSent, told } from './lane-tell.ts'
import type { Chain, FeeSponsor, LaneHandler, LaneSigner, Receipt, SendAnswer } from './port.ts'

export interface LaneParts {
  readonly deps: Pick<Deps, 'db' | 'clock' | 'log' | 'metrics'>
  readonly chain: Chain
  readonly signer: LaneSigner
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
/** Signed bytes that one database transaction stores. */
const signedAtOnce = 50
/** Transactions without a receipt that are looked after at the same time. */
const soughtAtOnce = 4

/**
 * One pass over a lane: signs what is planned, sends what is signed, looks for what is mined, and closes what is final.
 * Every step commits before the next begins and is taken from the rows alone, so a pass that dies anywhere is simply
 * followed by another: bytes are stored before they are sent, and sending again sends the same bytes.
 * Answers how many transactions are still open.
 */
export async function passLane(parts: LaneParts, lane: LaneKey): Promise<number> {
  const { open } = await sendLane(parts, lane)
  return open === 0 ? 0 : followLane(parts, lane)
}

/** The first half of a pass: signs and sends. Answers how many are open, and how many went out. */
export async function sendLane(
  parts: LaneParts,
  lane: LaneKey,
): Promise<{ readonly open: number; readonly sent: number }> {
  const { db } = parts.deps
  const listed = await listOpen(db, lane)
  const planned = listed.filter((transaction) => transaction.status === 'planned')
  await signPlanned(parts, lane, planned)
  const open = planned.length === 0 ? listed : await listOpen(db, lane)
  const unsent = open.filter((transaction) => transaction.status === 'sent' && transaction.lastBroadcastAt === null)
  await broadcast(parts, lane, unsent, await attemptsOf(parts, unsent))
  return { open: open.length, sent: unsent.length }
}

/** The second half: looks after what was sent. Both may run at once, each once: what is being sent meanwhile is left for the next time. */
export async function followLane(parts: LaneParts, lane: LaneKey): Promise<number> {
  const open = await listOpen(parts.deps.db, lane)
  const sent = open.filter(({ status, lastBroadcastAt }) => status === 'mined' || lastBroadcastAt !== null)
  return followReceipts(parts, lane, { open, sent, attempts: await attemptsOf(parts, sent) })
}

async function attemptsOf({ deps }: LaneParts, transactions: readonly TransactionRow[]): Promise<Attempts> {
  if (transactions.length === 0) return new Map()
  const ids = transactions.map(({ id }) => id)
  return Map.groupBy(await listAttempts(deps.db, ids), ({ transactionId }) => transactionId)
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
  const lowest = (await listOpen(db, lane))[0]?.nonce ?? nextNonce
  const count = await parts.chain.transactionCount(lane.sender, 'latest')
  if (count < lowest) await fillGap(parts, lane, count, lowest)
}

async function signPlanned(parts: LaneParts, lane: LaneKey, planned: readonly TransactionRow[]): Promise<void> {
  if (planned.length === 0) return
  const fees = await parts.chain.offeredFees()
  for (let from = 0; from < planned.length; from += signedAtOnce) {
    const some = planned.slice(from, from + signedAtOnce)
    await signAttempts(
      parts,
      lane,
      some.map((transaction) => ({ transaction, sequence: 0, fees })),
    )
  }
}

interface Wanted {
  readonly transaction: TransactionRow
  readonly sequence: number
  readonly fees: Fees
}

/** Signs, and stores what it signed before anybody can send it; all of them are stored or none. */
async function signAttempts(parts: LaneParts, lane: LaneKey, wanted: readonly Wanted[]): Promise<readonly Signed[]> {
  const { deps, handlers } = parts
  const calls = await listCallData(
    deps.db,
    wanted.map(({ transaction }) => transaction.id),
  )
  const createdAt = deps.clock.now()
  const attempts = await Promise.all(
    wanted.map(async ({ transaction, sequence, fees }) => {
      const called = calls.get(transaction.id)
      if (called === undefined) throw new Error('a transaction without call data')
      const signed = await signForm(parts, transaction, { ...called, fees })
      return { transactionId: transaction.id, sequence, hash: signed.hash, raw: signed.raw, ...fees, createdAt }
    }),
  )
  await deps.db.tx(async (tx) => {
    await insertAttempts(tx, lane, attempts)
    const sent = attempts.map(({ hash }, index) => {
      const transaction = wanted[index]?.transaction
      if (transaction === undefined) throw new Error('bytes of no transaction')
      return { ...told(lane, transaction), hash }
    })
    await tellSent(handlers, tx, sent)
  })
  return attempts
}

type Signed = AttemptRow & { readonly raw: Hex }

type Attempts = ReadonlyMap<string, readonly AttemptRow[]>

/**
 * Sends stored bytes, lowest nonce first. What a node refuses stays and is sent again later, never dropped. Where it refuses the newest form
 * of a transaction, which offers most, the account may still pay for an earlier one that the nodes have forgotten: those go out too.
 */
async function broadcast(
  parts: LaneParts,
  lane: LaneKey,
  transactions: readonly TransactionRow[],
  attempts: Attempts,
): Promise<readonly SendAnswer[]> {
  const { deps, chain } = parts
  const known = transactions.flatMap((transaction) => {
    const latest = attempts.get(transaction.id)?.at(-1)
    return latest === undefined ? [] : [{ transaction, latest }]
  })
  if (known.length === 0) return []
  const raws = await listLatestRaw(
    deps.db,
    known.map(({ transaction }) => transaction.id),
  )
  const answers = await chain.send(known.flatMap(({ transaction }) => raws.get(transaction.id) ?? []))
  await markBroadcast(
    deps.db,
    known.map(({ transaction }) => transaction.id),
    deps.clock.now(),
  )
  for (const [index, { transaction, latest }] of known.entries()) {
    const answer = answers[index]
    if (answer?.outcome === 'refused') {
      complain(parts, lane, transaction, answer.words)
      if (latest.sequence > 0) await chain.send(await listEarlierRaw(deps.db, transaction.id, latest.sequence))
      await lower(parts, lane, transaction, attempts.get(transaction.id) ?? [])
    }
    if (answer?.outcome === 'underpriced') await replace(parts, lane, transaction, latest)
  }
  return answers
}

function complain({ deps }: LaneParts, lane: LaneKey, transaction: TransactionRow, why: string): void {
  deps.metrics
    .gauge('purser_lane_refusals', 'How often a node refused a transaction; most often its account has no gas.')
    .inc()
  const facts = { network: lane.network, sender: lane.sender, nonce: transaction.nonce.toString(), why }
  deps.log.error(facts, 'the node refuses a transaction; it stays and is tried again')
}

/**
 * Signs the same transaction again at what its account can pay, where it can pay for none of its forms: fees have risen since its coin was
 * reckoned. The dearer bytes stay stored, since they may still be mined.
 */
async function lower(
  parts: LaneParts,
  lane: LaneKey,
  transaction: TransactionRow,
  attempts: readonly AttemptRow[],
): Promise<void> {
  const last = attempts.at(-1)
  const fees = await affordableFees(parts.chain, lane.sender, transaction, attempts)
  if (fees === undefined || last === undefined) return
  const signed = await signAttempts(parts, lane, [{ transaction, sequence: last.sequence + 1, fees }])
  await parts.chain.send(signed.map(({ raw }) => raw))
}

/** Signs the same transaction again at a higher fee; the earlier bytes stay stored, since they may still be mined. */
async function replace(parts: LaneParts, lane: LaneKey, transaction: TransactionRow, last: AttemptRow): Promise<void> {
  const fees = replacementFees(last, await parts.chain.offeredFees(), feeLimits(parts.chain.network))
  if (fees === undefined) {
    parts.deps.log.error(
      { network: lane.network, nonce: transaction.nonce.toString() },
      'a transaction waits: more than the fee limit would be needed',
    )
    return
  }
  const signed = await signAttempts(parts, lane, [{ transaction, sequence: last.sequence + 1, fees }])
  await parts.chain.send(signed.map(({ raw }) => raw))
}

/** Looks for the receipt of every hash ever signed at the open nonces, and moves each transaction as far as the chain says. */
async function followReceipts(
  parts: LaneParts,
  lane: LaneKey,
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
  const { receipts, head, transactionCount } = await chain.watch(
    lane.sender,
    hashes.map(({ hash }) => hash),
  )
  const found = new Map<string, Receipt>()
  hashes.forEach(({ transaction }, index) => {
    const receipt = receipts[index]
    if (receipt !== undefined) found.set(transaction.id, receipt)
  })
  const known = sent.flatMap((transaction) => {
    const receipt = found.get(transaction.id)
    // A receipt of a nonce that the chain has not come to is of no block: it is looked at again.
    if (receipt === undefined || transactionCount <= transaction.nonce || receipt.blockNumber > head.number) return []
    return [{ transaction, receipt }]
  })
  const closed = await advanceAll(parts, lane, known, head.number)
  const lost = sent.filter(({ id }) => !found.has(id)).reverse()
  const workers = Array.from({ length: Math.min(soughtAtOnce, lost.length) }, async () => {
    for (let next = lost.pop(); next !== undefined; next = lost.pop()) {
      const transaction = next
      await missing(parts, lane, transaction, { attempts, transactionCount }).catch((error: unknown) =>
        notFollowed(parts, transaction, error),
      )
    }
  })
  await Promise.all(workers)
  const lowest = open[0]?.nonce
  if (lowest !== undefined && transactionCount < lowest) await fillGap(parts, lane, transactionCount, lowest)
  return open.length - closed
}

/** No receipt for any of its hashes: wait, send the same bytes again, or offer more when it has waited too long. */
async function missing(
  parts: LaneParts,
  lane: LaneKey,
  transaction: TransactionRow,
  seen: { readonly attempts: Attempts; readonly transactionCount: bigint },
): Promise<void> {
  const { attempts, transactionCount } = seen
  const { clock } = parts.deps
  // A node that counts it and has no receipt is merely behind itself.
  if (transaction.status === 'mined')
    return transactionCount > transaction.nonce ? undefined : reorganised(parts, lane, transaction)
  const now = clock.now().getTime()
  const latest = attempts.get(transaction.id)?.at(-1)
  if (transactionCount <= transaction.nonce) parts.usedSince.delete(transaction.id)
  else if (latest !== undefined && hasLongBeenUsed(parts, transaction, now)) {
    const hashes = (attempts.get(transaction.id) ?? []).map(({ hash }) => hash)
    if (await parts.chain.isNonceLost(lane.sender, transaction.nonce, hashes))
      return displace(parts, lane, transaction, latest)
  }
  if (latest === undefined || now - (transaction.lastBroadcastAt?.getTime() ?? 0) <= rebroadcastMs) return
  const [answer] = await broadcast(parts, lane, [transaction], attempts)
  // Only the lowest nonce that the chain waits for can be helped by a higher fee, and only when fees are what it lacks.
  const stuckMs = Math.max(parts.chain.network.blockTimeMs * stuckBlocks, 10_000)
  const isStuck = now - latest.createdAt.getTime() > stuckMs && transactionCount === transaction.nonce
  if (isStuck && answer?.outcome === 'sent') await replace(parts, lane, transaction, latest)
}

/** Its block is gone: its feature is told in the transaction that has the same bytes sent again. */
function reorganised({ deps, handlers }: LaneParts, lane: LaneKey, transaction: TransactionRow): Promise<void> {
  return deps.db.tx(async (tx) => {
    if ((await markReorganised(tx, transaction.id)) === 0) return
    const hash = transaction.minedHash ?? '0x'
    await handlers.get(transaction.purpose)?.onReorganised?.(tx, { ...told(lane, transaction), hash })
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
async function displace(
  parts: LaneParts,
  lane: LaneKey,
  transaction: TransactionRow,
  latest: AttemptRow,
): Promise<void> {
  const handler = handlerOf(parts.handlers, transaction)
  parts.deps.log.error(
    { network: lane.network, sender: lane.sender, nonce: transaction.nonce.toString() },
    'a nonce was used outside its lane',
  )
  await parts.deps.db.tx(async (tx) => {
    const locked = await lockTransaction(tx, transaction.id)
    if (locked.status !== 'sent') return
    await markFinal(tx, [transaction.id])
    await handler.onDisplaced(tx, { ...told(lane, transaction), hash: latest.hash })
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

/** Waits for news or the poll, whichever comes first. */
export async function waitForWork(nudged: Promise<void>, ms: number, stopped: AbortSignal): Promise<void> {
  if (stopped.aborted) return
  const waiting = new AbortController()
  const stop = (): void => waiting.abort()
  stopped.addEventListener('abort', stop, { once: true })
  await Promise.race([nudged, pause(ms, waiting.signal)])
  waiting.abort()
  stopped.removeEventListener('abort', stop)
}

/** How often an open lane is looked at: a twentieth of a block, within bounds that suit instant and slow chains alike. */
export function pollMsOf(network: Network): number {
  return Math.min(1_000, Math.max(50, network.blockTimeMs / 20))
}

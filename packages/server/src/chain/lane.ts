import { type Hex, type Network, tokenByAddress } from '@purser/protocol'
import type { Deps } from '../platform/ctx.ts'
import { pause } from '../platform/work/runner.ts'
import { type Fees, feeLimits, replacementFees } from './fees.ts'
import {
  type AttemptRow,
  findNextNonce,
  insertAttempts,
  type LaneKey,
  listAttempts,
  listCallData,
  listFinalRaw,
  listLatestRaw,
  listOpen,
  lockTransaction,
  markBroadcast,
  markFinal,
  markMined,
  markReorganised,
  markUnsent,
  type TransactionRow,
} from './lane-store.ts'
import type { Chain, LaneHandler, LaneSigner, Receipt, SendAnswer, SignedTransaction, TempoFields } from './port.ts'

export interface LaneParts {
  readonly deps: Pick<Deps, 'db' | 'clock' | 'log' | 'metrics'>
  readonly chain: Chain
  readonly signer: LaneSigner
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
/** Transactions whose receipts are written down at the same time. */
const closedAtOnce = 4

/**
 * One pass over a lane: signs what is planned, sends what is signed, looks for what is mined, and closes what is final.
 * Every step commits before the next begins and is taken from the rows alone, so a pass that dies anywhere is simply
 * followed by another: bytes are stored before they are sent, and sending again sends the same bytes.
 * Answers how many transactions are still open.
 */
export async function passLane(parts: LaneParts, lane: LaneKey): Promise<number> {
  const { db } = parts.deps
  const listed = await listOpen(db, lane)
  if (listed.length === 0) return 0
  const planned = listed.filter((transaction) => transaction.status === 'planned')
  await signPlanned(parts, lane, planned)
  const open = planned.length === 0 ? listed : await listOpen(db, lane)
  const ids = open.map((transaction) => transaction.id)
  const attempts = Map.groupBy(await listAttempts(db, ids), (attempt) => attempt.transactionId)
  const unsent = open.filter((transaction) => transaction.status === 'sent' && transaction.lastBroadcastAt === null)
  await broadcast(parts, lane, unsent, attempts)
  const now = parts.deps.clock.now()
  const followed = open.map((transaction) =>
    unsent.includes(transaction) ? { ...transaction, lastBroadcastAt: now } : transaction,
  )
  return followReceipts(parts, lane, followed, attempts)
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

function told(lane: LaneKey, transaction: TransactionRow) {
  return { id: transaction.id, network: lane.network, purpose: transaction.purpose, nonce: transaction.nonce }
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
      const data = calls.get(transaction.id)
      if (data === undefined) throw new Error('a transaction without call data')
      const signed = await signForm(parts, transaction, { data, fees })
      return { transactionId: transaction.id, sequence, hash: signed.hash, raw: signed.raw, ...fees, createdAt }
    }),
  )
  await deps.db.tx(async (tx) => {
    await insertAttempts(tx, lane, attempts)
    for (const [index, { hash }] of attempts.entries()) {
      const transaction = wanted[index]?.transaction
      if (transaction === undefined) throw new Error('bytes of no transaction')
      await handlers.get(transaction.purpose)?.onSent?.(tx, { ...told(lane, transaction), hash })
    }
  })
  return attempts
}

type Signed = AttemptRow & { readonly raw: Hex }

interface Form {
  readonly data: Hex
  readonly fees: Fees
}

function signForm(
  { chain: { network }, signer }: LaneParts,
  { nonce, toAddress: to, value, gasLimit }: TransactionRow,
  { data, fees }: Form,
): Promise<SignedTransaction> {
  const { chainId } = network
  const offered = { maxFeePerGas: fees.maxFee, maxPriorityFeePerGas: fees.priorityFee }
  if (network.nativeCoin !== null)
    return signer.signTransaction({ chainId, nonce, to, data, value, gasLimit, ...offered })
  return signTempo(signer, {
    chainId,
    calls: [{ to, value, data }],
    nonceKey: 0n,
    nonce,
    validBefore: undefined,
    validAfter: undefined,
    gasLimit,
    ...offered,
    // Where there is no coin the fee is paid in the token that is called, which the account holds since it sends it.
    feeToken: tokenByAddress(network, to)?.address,
    feePaidBy: 'sender',
  })
}

async function signTempo(signer: LaneSigner, fields: TempoFields): Promise<SignedTransaction> {
  const signed = await signer.signTempoTransaction?.(fields)
  if (signed?.hash === undefined) throw new Error('the account signs nothing for a chain without a coin')
  return { raw: signed.raw, hash: signed.hash }
}

type Attempts = ReadonlyMap<string, readonly AttemptRow[]>

/** Sends stored bytes, lowest nonce first. What a node refuses stays and is sent again later, never dropped. */
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
    if (answer?.outcome === 'refused') complain(parts, lane, transaction, answer.words)
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
  open: readonly TransactionRow[],
  attempts: Attempts,
): Promise<number> {
  const { chain } = parts
  const sent = open.filter((transaction) => transaction.status !== 'planned')
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
  let left = open.length
  const follow = async (transaction: TransactionRow): Promise<void> => {
    const receipt = found.get(transaction.id)
    try {
      if (receipt === undefined) await missing(parts, lane, transaction, { attempts, transactionCount })
      else if (await advance(parts, lane, transaction, { receipt, head: head.number })) left -= 1
    } catch (error) {
      // One that cannot be closed must not keep those behind it from being closed.
      parts.deps.log.error(
        { err: error, transactionId: transaction.id },
        'a transaction could not be followed; it will be tried again',
      )
    }
  }
  const waiting = [...sent].reverse()
  const workers = Array.from({ length: Math.min(closedAtOnce, sent.length) }, async () => {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) await follow(next)
  })
  await Promise.all(workers)
  const lowest = open[0]?.nonce
  if (lowest !== undefined && transactionCount < lowest) await fillGap(parts, lane, transactionCount, lowest)
  return left
}

async function advance(
  parts: LaneParts,
  lane: LaneKey,
  transaction: TransactionRow,
  seen: { readonly receipt: Receipt; readonly head: bigint },
): Promise<boolean> {
  const { receipt, head } = seen
  const depth = head - receipt.blockNumber + 1n
  const isFinal = depth >= BigInt(parts.chain.network.confirmationDepth)
  if (!isFinal && transaction.status === 'mined' && transaction.minedBlock === receipt.blockNumber) return false
  const handler = handlerOf(parts, transaction)
  return parts.deps.db.tx(async (tx) => {
    const locked = await lockTransaction(tx, transaction.id)
    if (locked.status === 'final') return true
    await markMined(tx, transaction.id, receipt)
    const facts = { ...told(lane, transaction), hash: receipt.transactionHash }
    if (locked.status !== 'mined' || locked.minedBlock !== receipt.blockNumber)
      await handler.onMined?.(tx, facts, receipt)
    if (!isFinal) return false
    await markFinal(tx, transaction.id)
    await handler.onFinal(tx, facts, receipt)
    return true
  })
}

function handlerOf({ handlers }: LaneParts, { purpose }: TransactionRow): LaneHandler {
  const handler = handlers.get(purpose)
  if (handler === undefined) throw new Error(`nobody is told about transactions for ${purpose}`)
  return handler
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
  else if (latest !== undefined && hasLongBeenUsed(parts, transaction, now))
    return displace(parts, lane, transaction, latest)
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
  const handler = handlerOf(parts, transaction)
  parts.deps.log.error(
    { network: lane.network, sender: lane.sender, nonce: transaction.nonce.toString() },
    'a nonce was used outside its lane',
  )
  await parts.deps.db.tx(async (tx) => {
    const locked = await lockTransaction(tx, transaction.id)
    if (locked.status !== 'sent') return
    await markFinal(tx, transaction.id)
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

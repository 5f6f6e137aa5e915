import { type Address, type Hex, l1FeeOf } from '@purser/protocol'
import type { Deps } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { isProblem } from '../../platform/errors.ts'
import { inParallel } from '../../platform/in-parallel.ts'
import { fencedTx, type LeaseSet } from '../../platform/leases/store.ts'
import { type Fees, replacementFees, takesDataGas } from '../fees/fees.ts'
import type { Chain, SendResponse } from '../port.ts'
import type { CoversRaise, Handlers, LaneTransaction } from './port.ts'
import { listEarlierRaw, listKnownHashes, listLatestRaw, listSigned } from './recovery-store.ts'
import { type Signed, type SigningParts, sign, signedGasLimit } from './sign.ts'
import {
  type AttemptRow,
  findCallData,
  insertAttempts,
  type LaneTransactionRow,
  listAttempts,
  listUnsent,
  markBroadcast,
  type Unsent,
} from './store.ts'

/** Dependencies of one turn over the lanes of a network. */
export interface LaneParts extends SigningParts {
  readonly deps: Pick<Deps, 'db' | 'clock' | 'log' | 'metrics' | 'witness'>
  readonly chain: Chain
  readonly handlers: Handlers
  /** The leases under which the turn began. Every write checks them; after losing them the turn can only rebroadcast stored bytes. */
  readonly leased: LeaseSet
  /** When a quorum first found a transaction’s nonce used without a receipt of ours: milliseconds by transaction id. */
  readonly usedSince: Map<string, number>
  readonly overdue: OverdueLog
}

/** A transaction that is open for longer is overdue: each network mines and confirms in less than a minute. Also the time between two lines. */
const overdueMs = 600_000

export interface OverdueLog {
  /** Logs the oldest overdue transaction of each account, at most once in ten minutes for an account. */
  report(open: readonly LaneTransactionRow[], attempts: ReadonlyMap<string, readonly AttemptRow[]>): void
}

export function createOverdueLog({ clock, log }: Pick<Deps, 'clock' | 'log'>): OverdueLog {
  const loggedMs = new Map<Address, number>()
  return {
    report(open, attempts) {
      const now = clock.now().getTime()
      const overdue = open.filter(({ createdAt }) => now - createdAt.getTime() > overdueMs)
      for (const [sender, at] of loggedMs) if (now - at > overdueMs) loggedMs.delete(sender)
      for (const [sender, [oldest]] of Map.groupBy(overdue, (one) => one.sender)) {
        if (oldest === undefined || loggedMs.has(sender)) continue
        loggedMs.set(sender, now)
        const { id: transactionId, network, nonce, purpose, status, createdAt: since } = oldest
        const hashes = (attempts.get(transactionId) ?? []).map(({ hash }) => hash)
        const details = { network, sender, nonce: nonce.toString(), transactionId, purpose, status, since, hashes }
        log.warn(details, 'a transaction is open for more than ten minutes')
      }
    },
  }
}

/** Accounts that are processed in parallel after their batch failed. */
const retriesAtOnce = 8

/**
 * Processes accounts in one batch. When the batch fails, processes each account separately, so that one does not block others. Throws only when a
 * single account was given and failed.
 */
export async function isolateFailures<T>(
  parts: LaneParts,
  senders: readonly Address[],
  work: (senders: readonly Address[]) => Promise<readonly T[]>,
): Promise<readonly T[]> {
  try {
    return await work(senders)
  } catch (error) {
    if (senders.length === 1) throw error
    return (
      await inParallel(senders, retriesAtOnce, (sender) => work([sender]).catch(logStalled(parts, sender)))
    ).flat()
  }
}

/** Logs that an account's lane failed. The next turn retries. */
export function logStalled({ deps, chain }: LaneParts, sender: Address) {
  return (error: unknown): [] => {
    const details = { err: error, network: chain.network.name, sender }
    deps.log.warn(details, 'the lane of an account failed; retrying')
    return []
  }
}

/** Most transactions that are signed and sent in one batch. */
const sentAtOnce = 64

/** Signs and sends what these accounts have planned, and sends what was signed but not sent. Returns the senders. */
export async function sendLanes(parts: LaneParts, senders: readonly Address[]): Promise<ReadonlySet<Address>> {
  return new Set(await isolateFailures(parts, senders, (some) => sendUnsent(parts, some)))
}

async function sendUnsent(parts: LaneParts, senders: readonly Address[]): Promise<Address[]> {
  const sent: Address[] = []
  for (let isMore = true; isMore; ) {
    const unsent = await listUnsent(parts.deps.db, parts.chain.network.name, senders, sentAtOnce)
    await resend(parts, unsent)
    const signed = await signPlanned(parts, unsent)
    sent.push(...unsent.map(({ transaction: { sender } }) => sender))
    isMore = unsent.length === sentAtOnce && signed > 0
  }
  return sent
}

export async function attemptsOf({ deps }: LaneParts, transactions: readonly LaneTransactionRow[]): Promise<Attempts> {
  if (transactions.length === 0) return new Map()
  const ids = transactions.map(({ id }) => id)
  return Map.groupBy(await listAttempts(deps.db, ids), ({ transactionId }) => transactionId)
}

/** Rebroadcasts transactions that were signed before. */
async function resend(parts: LaneParts, unsent: readonly Unsent[]): Promise<void> {
  const signed = unsent.flatMap(({ transaction, called }) => (called === undefined ? [transaction] : []))
  await broadcast(parts, signed, await attemptsOf(parts, signed))
}

/** Signs planned transactions, each account separately, and sends them. Returns how many were sent. */
async function signPlanned(parts: LaneParts, unsent: readonly Unsent[]): Promise<number> {
  const planned = unsent.flatMap(({ transaction, called }) => (called === undefined ? [] : [{ transaction, called }]))
  if (planned.length === 0) return unsent.length
  const fees = await parts.chain.offeredFees()
  const accounts = [...Map.groupBy(planned, ({ transaction: { sender } }) => sender)]
  const signed = await Promise.all(
    accounts.map(async ([sender, own]) => {
      const wanted = own.map((one) => ({ ...one, sequence: 0, fees }))
      return accounts.length === 1 ? sign(parts, wanted) : sign(parts, wanted).catch(logStalled(parts, sender))
    }),
  )
  const attempts = signed.flat()
  await store(parts, attempts)
  const responses = await sendCovered(
    parts,
    attempts.map(({ attempt: { raw } }) => raw),
  )
  await handleResponses(
    parts,
    attempts.map(({ transaction, attempt }) => ({ transaction, attempts: [attempt] })),
    responses,
  )
  return attempts.length
}

/**
 * Stores signed attempts atomically before they are sent. Returns false, and stores nothing, where their fees are not covered. Throws when a lease was
 * lost; nothing is sent then.
 */
async function store(
  { deps, handlers, leased }: LaneParts,
  signed: readonly Signed[],
  isCovered: CoversRaise = async () => true,
): Promise<boolean> {
  if (signed.length === 0) return true
  return fencedTx(deps.db, leased, async (tx) => {
    if (!(await isCovered(tx))) return false
    await insertAttempts(
      tx,
      leased,
      signed.map(({ attempt }) => attempt),
    )
    await notifySent(
      handlers,
      tx,
      signed.map(({ transaction, attempt: { hash } }) => toLaneTransaction(transaction, hash)),
    )
    return true
  })
}

interface NewFees {
  readonly transaction: LaneTransactionRow
  readonly last: AttemptRow
  readonly fees: Fees
  readonly isCovered?: CoversRaise | undefined
}

/**
 * Signs a transaction again with new fees and sends it, unless its account may not pay them or the bytes are those of an attempt. The earlier bytes
 * stay stored, since they may still be mined.
 */
async function signAgain(parts: LaneParts, { transaction, last, fees, isCovered }: NewFees): Promise<void> {
  const called = await findCallData(parts.deps.db, transaction.id)
  const signed = await sign(parts, [{ transaction, called, sequence: last.sequence + 1, fees }])
  const hashes = signed.map(({ attempt: { hash } }) => hash)
  if ((await listKnownHashes(parts.deps.db, transaction.network, hashes)).size > 0) return
  if (!(await store(parts, signed, isCovered))) return logWaiting(parts, transaction, 'its account may not pay more')
  await sendCovered(
    parts,
    signed.map(({ attempt: { raw } }) => raw),
  )
}

/**
 * Sends stored bytes to the nodes after the witness covers them, so that a database restored without their rows detects the loss and sends nothing.
 */
export async function sendCovered({ deps, chain }: LaneParts, raws: readonly Hex[]): Promise<readonly SendResponse[]> {
  if (raws.length === 0) return []
  await deps.witness.cover()
  return chain.send(raws)
}

export type Attempts = ReadonlyMap<string, readonly AttemptRow[]>

/** Sends stored bytes, lowest nonce first. A refused transaction is never dropped; it is sent again later. */
export async function broadcast(
  parts: LaneParts,
  transactions: readonly LaneTransactionRow[],
  attempts: Attempts,
): Promise<readonly SendResponse[]> {
  const { deps, leased } = parts
  const known = transactions.flatMap((transaction) => {
    const latest = attempts.get(transaction.id)?.at(-1)
    return latest === undefined ? [] : [{ transaction, attempts: attempts.get(transaction.id) ?? [] }]
  })
  if (known.length === 0) return []
  const raws = await listLatestRaw(
    deps.db,
    known.map(({ transaction }) => transaction.id),
  )
  const responses = await sendCovered(
    parts,
    known.flatMap(({ transaction }) => raws.get(transaction.id) ?? []),
  )
  const ids = known.map(({ transaction }) => transaction.id)
  await markBroadcast(deps.db, leased, { ids, at: deps.clock.now() })
  await handleResponses(parts, known, responses)
  return responses
}

/**
 * Reacts to the nodes' responses. When the newest attempt is refused, sends the earlier attempts too: they offer less, so the account may still be
 * able to pay for one that the nodes have dropped.
 */
async function handleResponses(
  parts: LaneParts,
  sent: readonly { readonly transaction: LaneTransactionRow; readonly attempts: readonly AttemptRow[] }[],
  responses: readonly SendResponse[],
): Promise<void> {
  for (const [index, { transaction, attempts }] of sent.entries()) {
    const [response, latest] = [responses[index], attempts.at(-1)]
    if (response?.outcome === 'refused') {
      reportRefusal(parts, transaction, response.words)
      if (latest !== undefined && latest.sequence > 0)
        await sendCovered(parts, await listEarlierRaw(parts.deps.db, transaction.id, latest.sequence))
      if (latest !== undefined && lacksGas(response.words)) await raiseGas(parts, transaction, latest)
      else await lowerFees(parts, transaction, attempts)
    }
    if (response?.outcome === 'underpriced' && latest !== undefined) await replace(parts, transaction, latest)
  }
}

/** How nodes refuse a transaction whose gas limit does not cover its bytes. */
function lacksGas(words: string): boolean {
  return /intrinsic gas/i.test(words)
}

/** A node that refuses every gas limit gets a new attempt no more often than this. */
const raiseGasMs = 60_000

/** Signs the transaction again with the gas that its bytes take now, where they take more than when it was signed. */
async function raiseGas(parts: LaneParts, transaction: LaneTransactionRow, last: AttemptRow): Promise<void> {
  const signedMs = parts.deps.clock.now().getTime() - last.createdAt.getTime()
  if (!takesDataGas(parts.chain.network) || signedMs < raiseGasMs) return
  const [{ maxFee, priorityFee, baseFee, dataGas }, [latest]] = await Promise.all([
    parts.chain.offeredFees(),
    listSigned(parts.deps.db, transaction.id),
  ])
  const gasLimit = transaction.gasLimit + l1FeeOf(dataGas, transaction.dataBytes)
  if (latest === undefined || signedGasLimit(latest.raw) >= gasLimit) return
  const fees = baseFee > last.maxFee ? { maxFee, priorityFee } : last
  await signAgain(parts, { transaction, last, fees })
}

function reportRefusal({ deps }: LaneParts, transaction: LaneTransactionRow, why: string): void {
  deps.metrics
    .counter(
      'purser_lane_refusals_total',
      'How often a node refused a transaction; most often its account has no gas.',
      ['network'],
    )
    .inc({ network: transaction.network })
  const details = { network: transaction.network, sender: transaction.sender, nonce: transaction.nonce.toString(), why }
  deps.log.error(details, 'the node refuses a transaction; it is kept and will be retried')
}

/**
 * Signs the transaction again at fees that its account can pay, when it can pay for none of its attempts because fees have risen since its balance
 * was checked. The more expensive bytes stay stored, since they may still be mined.
 */
async function lowerFees(
  parts: LaneParts,
  transaction: LaneTransactionRow,
  attempts: readonly AttemptRow[],
): Promise<void> {
  const last = attempts.at(-1)
  if (last === undefined) return
  const fees = await affordableFees(parts, transaction, last).catch(undefinedIfUnavailable)
  if (fees !== undefined) await signAgain(parts, { transaction, last, fees })
}

function undefinedIfUnavailable(error: unknown): undefined {
  if (!isProblem(error, 'chain-unavailable')) throw error
}

/** Signs the same transaction again at a higher fee. */
export async function replace(parts: LaneParts, transaction: LaneTransactionRow, last: AttemptRow): Promise<void> {
  const fees = replacementFees(last, await parts.chain.offeredFees(), parts.chain.network.gasFees)
  if (fees === undefined) return logWaiting(parts, transaction, 'a replacement would exceed the fee limit')
  const more = (fees.maxFee - last.maxFee) * transaction.gasLimit
  await signAgain(parts, { transaction, last, fees, isCovered: await coverOf(parts, transaction, more) })
}

/** The account of a sponsored transaction, and one of a network with a coin, pays its fees from money that nothing keeps on hold. */
async function coverOf(
  { chain, handlers }: LaneParts,
  transaction: LaneTransactionRow,
  more: bigint,
): Promise<CoversRaise | undefined> {
  if (chain.network.nativeCoin !== null || transaction.isSponsored) return undefined
  return handlers.get(transaction.purpose)?.coverRaise?.(toLaneTransaction(transaction, '0x'), more)
}

function logWaiting({ deps }: LaneParts, { network, sender, nonce }: LaneTransactionRow, why: string): void {
  deps.log.error({ network, sender, nonce: nonce.toString() }, `a transaction waits: ${why}`)
}

/**
 * The fees that an account can still afford for its next transaction, when it cannot pay for any of the attempts signed so far: its whole balance.
 * Undefined when it can pay for an attempt that covers the base fee and the gas of its bytes, when the affordable fee is below the base fee, and while the
 * nodes do not agree on the balance. The transaction then waits for coin or for a lower base fee.
 */
async function affordableFees(
  { chain, deps }: LaneParts,
  { id, sender, nonce, value, gasLimit, dataBytes }: LaneTransactionRow,
  last: Fees,
): Promise<Fees | undefined> {
  if (chain.network.nativeCoin === null) return undefined
  const [[holding], next, { baseFee, l1Fee, dataGas }, signed] = await Promise.all([
    chain.agreedHoldings([{ account: sender, tokens: [] }]),
    chain.transactionCount(sender),
    chain.offeredFees(),
    listSigned(deps.db, id),
  ])
  // Rounded down, so that it never exceeds the balance.
  const gasOfData = l1FeeOf(dataGas, dataBytes)
  const beside = gasOfData === 0n ? l1FeeOf(l1Fee, dataBytes) : 0n
  const payable = (holding?.native ?? 0n) - value - beside
  const most = payable / (gasLimit + gasOfData)
  if (nonce !== next || most <= 0n || most < baseFee) return undefined
  // `dataGas` is twice what the bytes take now, so half of it covers them.
  const gasNeeded = gasLimit + gasOfData / 2n
  const isPayable = ({ maxFee, raw }: (typeof signed)[number]): boolean => {
    const limit = signedGasLimit(raw)
    return maxFee >= baseFee && limit >= gasNeeded && limit * maxFee <= payable
  }
  return signed.some(isPayable)
    ? undefined
    : { maxFee: most, priorityFee: last.priorityFee < most ? last.priorityFee : most }
}

/** A stored transaction in the form that handlers receive, with this hash. */
export function toLaneTransaction(
  { id, network, purpose, nonce }: LaneTransactionRow,
  hash: LaneTransaction['hash'],
): LaneTransaction {
  return { id, network, purpose, nonce, hash }
}

/** Calls the handlers of these transactions in the database transaction that stores the signed bytes. */
export async function notifySent(handlers: Handlers, tx: Tx, sent: readonly LaneTransaction[]): Promise<void> {
  for (const [purpose, some] of Map.groupBy(sent, (one) => one.purpose)) await handlers.get(purpose)?.onSent?.(tx, some)
}

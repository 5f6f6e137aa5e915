import { type Address, type Hex, l1FeeOf, tokenByAddress } from '@purser/protocol'
import type { Deps } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { inParallel } from '../../platform/in-parallel.ts'
import { fencedTx, type LeaseSet } from '../../platform/leases/store.ts'
import { type Fees, replacementFees, takesDataGas } from '../fees/fees.ts'
import type { Chain, FeeSponsor, SendResponse, SignedTransaction, TempoFields, TempoTransaction } from '../port.ts'
import type { OverdueLog } from './overdue.ts'
import type { CoversRaise, Handlers, LaneSigner, LaneTransaction } from './port.ts'
import { listEarlierRaw, listKnownHashes, listLatestRaw } from './recovery-store.ts'
import { affordableFees, feesForMoreGas, lacksGas } from './replacement.ts'
import type { Searches } from './searches.ts'
import {
  type AttemptRow,
  type CallData,
  findCallData,
  insertAttempts,
  type LaneTransactionRow,
  listAttempts,
  listUnsent,
  markBroadcast,
  type SignedAttempt,
  type Unsent,
} from './store.ts'

/** Dependencies of one turn over the lanes of a network. */
export interface LaneParts {
  readonly deps: Pick<Deps, 'db' | 'clock' | 'log' | 'metrics' | 'witness'>
  readonly chain: Chain
  /** The signer of a resumed account. */
  readonly signerOf: (account: Address) => LaneSigner
  /** Pays the fees of sponsored transactions. Without a sponsor, those are not sent. */
  readonly sponsor?: FeeSponsor | undefined
  readonly handlers: Handlers
  /** The leases under which the turn began. Every write checks them; after losing them the turn can only rebroadcast stored bytes. */
  readonly leased: LeaseSet
  /** The time at which a quorum first found a transaction’s nonce used without a receipt of ours: milliseconds by transaction id. */
  readonly usedSince: Map<string, number>
  readonly searches: Searches
  readonly overdue: OverdueLog
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

/** A transaction to sign, as its next attempt. */
interface Wanted {
  readonly transaction: LaneTransactionRow
  readonly called: CallData
  readonly sequence: number
  readonly fees: Fees
}

interface Signed {
  readonly transaction: LaneTransactionRow
  readonly attempt: SignedAttempt
}

/** Signs attempts with the fees of each, and with the present gas of its bytes. Nothing is stored or sent. */
async function sign(parts: LaneParts, wanted: readonly Wanted[]): Promise<Signed[]> {
  const dataGas = takesDataGas(parts.chain.network) ? (await parts.chain.offeredFees()).dataGas : 0n
  const createdAt = parts.deps.clock.now()
  return Promise.all(
    wanted.map(async ({ transaction, called, sequence, fees: { maxFee, priorityFee } }) => {
      const fees = { maxFee, priorityFee }
      const { hash, raw } = await signForm(parts, transaction, { ...called, fees, dataGas })
      return { transaction, attempt: { transactionId: transaction.id, sequence, hash, raw, ...fees, createdAt } }
    }),
  )
}

/**
 * Signs a lane's transaction in its network's format: EIP-1559, or Tempo's type 0x76 on networks without a native coin, whose fee is paid in the
 * row's fee token. Without a fee token, the called token pays, which the account has because it sends it. Throws when a required signer is missing;
 * nothing is sent then. `dataGas` for each 256 bytes (see `OfferedFees`) is added to the stored gas limit, which is for the execution.
 */
function signForm(
  parts: LaneParts,
  row: LaneTransactionRow,
  { data, before, fees, dataGas }: CallData & { readonly fees: Fees; readonly dataGas: bigint },
): Promise<SignedTransaction> {
  const { network } = parts.chain
  const { nonce, toAddress: to, value } = row
  const gasLimit = row.gasLimit + l1FeeOf(dataGas, row.dataBytes)
  const { chainId } = network
  const offered = { maxFeePerGas: fees.maxFee, maxPriorityFeePerGas: fees.priorityFee }
  if (network.nativeCoin !== null)
    return parts.signerOf(row.sender).signTransaction({ chainId, nonce, to, data, value, gasLimit, ...offered })
  if (to === null) throw new Error('a transaction without a recipient cannot be sent here')
  const calls = [...before, { to, value, data }]
  const times = { validBefore: undefined, validAfter: undefined }
  const fields = { chainId, calls, nonceKey: 0n, nonce, ...times, gasLimit, ...offered }
  if (row.isSponsored) return signSponsored(parts, row, fields)
  const feeToken = row.feeToken ?? tokenByAddress(network, to)?.address
  return signOwn(parts, row, { ...fields, feeToken, feePaidBy: 'sender' })
}

async function signOwn(parts: LaneParts, row: LaneTransactionRow, fields: TempoFields): Promise<SignedTransaction> {
  const { raw, hash } = await signTempo(parts, row, fields)
  if (hash === undefined) throw new Error('a transaction whose sender pays the fee must have a hash')
  return { raw, hash }
}

/** The sponsor pays the fee and names the token. The planner has bounded the cost. */
async function signSponsored(
  parts: LaneParts,
  row: LaneTransactionRow,
  fields: Omit<TempoFields, 'feeToken' | 'feePaidBy'>,
): Promise<SignedTransaction> {
  const { feeToken } = row
  if (parts.sponsor === undefined || feeToken === null)
    throw new Error('a sponsored transaction has no sponsor or no fee token')
  const own = await signTempo(parts, row, { ...fields, feeToken: undefined, feePaidBy: 'sponsor' })
  return parts.sponsor.signTempoFeePayer(own, feeToken)
}

async function signTempo(
  { signerOf }: LaneParts,
  { sender }: LaneTransactionRow,
  fields: TempoFields,
): Promise<TempoTransaction> {
  const signed = await signerOf(sender).signTempoTransaction?.(fields)
  if (signed === undefined) throw new Error('the account has no signer for a network without a native coin')
  return signed
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
      if (latest !== undefined) await handleRefusal(parts, transaction, { latest, words: response.words })
    }
    if (response?.outcome === 'underpriced' && latest !== undefined) await replace(parts, transaction, latest)
  }
}

/** Sends the earlier attempts too, and signs the transaction again if other fees or another gas limit may help. */
async function handleRefusal(
  parts: LaneParts,
  transaction: LaneTransactionRow,
  { latest, words }: { readonly latest: AttemptRow; readonly words: string },
): Promise<void> {
  if (latest.sequence > 0)
    await sendCovered(parts, await listEarlierRaw(parts.deps.db, transaction.id, latest.sequence))
  const fees = await (lacksGas(words) ? feesForMoreGas : affordableFees)(parts, transaction, latest)
  if (fees !== undefined) await signAgain(parts, { transaction, last: latest, fees })
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

import {
  bytesToHex,
  decodeTransferLog,
  type Network,
  networkByName,
  sameAddress,
  tokenBySymbol,
} from '@purser/protocol'
import type { LaneHandler, LaneTransaction, MinedTransaction, Receipt } from '../../chain/port.ts'
import type { Ctx, Deps } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { systemCtx } from '../../platform/work/runner.ts'
import { assignReservations, costOf } from '../funds/index.ts'
import { endUnits } from './approval-store.ts'
import { deliveredTo } from './delivered.ts'
import { auditEnds, endAll } from './ending.ts'
import { awaitFinality, isFinalAtDepth } from './finality.ts'
import type { Settled } from './finality-store.ts'
import { isExpired, isFollowed } from './follow.ts'
import { markConfirmed, markPending, markStepsSent, type SeenTransfer, type TransferEnd } from './outcome-store.ts'
import { markLeft, markStepFees, markStepsDone, markStepsFinal, type StepFee, setLookAt } from './route-store.ts'
import {
  assignStep,
  findNextStep,
  hasLaterStep,
  listStepsOf,
  lockTransfers,
  type StepRow,
  type TransferRow,
  transferPurpose,
} from './store.ts'
import { leaveUnknown } from './unknown.ts'
import { tellWaiting, wakeWaiting } from './waiting.ts'

type Work = Omit<Ctx, 'tenant'>

/**
 * What the lanes do with the transactions of transfers, inside the database transaction that marks each. The transfers' rows are locked
 * first, so that what a block says and what a caller is told come one after the other.
 */
export function transferHandler(deps: Deps): LaneHandler {
  const ctx = systemCtx(deps)
  return {
    purpose: transferPurpose,
    onSent: (tx, transactions) => markStepsSent(tx, transactions),
    onMined: (tx, mined) => inTurns(tx, mined, (turn) => onMined(ctx, tx, turn)),
    async onReorganised(tx, transactions) {
      for (const { step, transfer } of await lockSteps(tx, transactions))
        if (await isDecidedBy(tx, step)) await markPending(tx, transfer.id, null)
    },
    async onReplaced(tx, transactions) {
      for (const { step, transfer } of await lockSteps(tx, transactions)) {
        if (!(await isDecidedBy(tx, step))) await markStepsDone(tx, [step], ctx.clock.now())
        else if (transfer.endedAt === null) await leaveUnknown(ctx, tx, transfer)
      }
    },
    onFinal: (tx, mined) => ending(ctx, tx, mined, onFinal),
    onMinedAndFinal: (tx, mined) => ending(ctx, tx, mined, onMinedAndFinal),
  }
}

/** The ends that this makes are audited when all of them are made. */
async function ending(
  ctx: Work,
  tx: Tx,
  mined: readonly MinedTransaction[],
  step: (ctx: Work, tx: Tx, turn: readonly Seen[]) => Promise<readonly TransferRow[]>,
): Promise<void> {
  const ended: TransferRow[] = []
  await inTurns(tx, mined, async (turn) => void ended.push(...(await step(ctx, tx, turn))))
  await auditEnds(ctx, tx, ended)
}

interface LockedStep {
  readonly transaction: LaneTransaction
  readonly step: StepRow
  readonly transfer: TransferRow
}

type Seen = LockedStep & { readonly receipt: Receipt }

/** What blocks say, as of now. */
async function onMined(ctx: Work, tx: Tx, seen: readonly Seen[]): Promise<void> {
  const own = seen.filter(({ step }) => step.kind !== 'claim')
  await markStepFees(tx, own.map(feeOfStep))
  tx.afterCommit(() => wakeWaiting(ctx.db))
  const { faulty, preparing, moved } = sorted(own.filter(({ step }) => !isAside(step)))
  for (const { step, transfer, fault } of faulty)
    if (await isDecidedBy(tx, step)) await markPending(tx, transfer.id, fault)
  for (const { transfer } of preparing) await goOn(ctx, tx, transfer)
  const now = ctx.clock.now()
  const [followed, ended] = parted(moved, ({ transfer }) => isFollowed(transfer))
  for (const { transfer, transaction } of followed) await markLeft(tx, transfer.id, { hash: transaction.hash, now })
  await markConfirmed(tx, ended.map(confirmedBy), now)
}

/** What blocks say for good; answers the transfers that ended by it. */
async function onFinal(ctx: Work, tx: Tx, seen: readonly Seen[]): Promise<readonly TransferRow[]> {
  const now = ctx.clock.now()
  await markStepsDone(
    tx,
    seen.map(({ step }) => step),
    now,
  )
  const { faulty, moved } = sorted(seen.filter(({ step }) => !isAside(step)))
  const failed: Decided[] = []
  for (const { fault, ...one } of faulty) if (await isDecidedBy(tx, one.step)) failed.push({ ...one, fault })
  const [followed, over] = parted(moved, ({ transfer }) => isFollowed(transfer))
  for (const { transfer } of followed) await setLookAt(tx, transfer.id, now)
  // What was approved is used up: the next transfer at the same contract need not wait for finality or delivery.
  await endUnits(tx, calledBy(moved))
  await awaitSettled(ctx, tx, followed)
  return endOrAwait(ctx, tx, [...failed, ...over])
}

/** What the block of a deciding step says: why the transfer fails, or that it is done; and what it shows, where that is news. */
type Decided = Seen & { readonly fault?: string | undefined; readonly seen?: SeenTransfer }

/** Ends transfers where the payment depth is final; elsewhere they stay open until their block is. Answers those that ended. */
async function endOrAwait(ctx: Work, tx: Tx, decided: readonly Decided[]): Promise<readonly TransferRow[]> {
  const [ended, open] = parted(decided, ({ transfer }) => isFinalAtDepth(sourceOf(transfer)))
  await awaitSettled(ctx, tx, open)
  const ends = ended.map(({ transfer, fault, seen }): TransferEnd => {
    return { transferId: transfer.id, fault, ...(seen && { seen }) }
  })
  return endAll(ctx, tx, ends)
}

async function awaitSettled(ctx: Work, tx: Tx, decided: readonly Decided[]): Promise<void> {
  for (const [network, some] of Map.groupBy(decided, ({ transfer }) => sourceOf(transfer)))
    if (!isFinalAtDepth(network)) await awaitFinality(ctx, tx, network, some.map(settledBy))
}

function settledBy({ transfer, transaction, receipt, fault, seen }: Decided): Settled {
  return { transferId: transfer.id, transactionId: transaction.id, blockHash: receipt.blockHash, fault, seen }
}

function sourceOf({ fromNetwork }: TransferRow): Network {
  const network = networkByName(fromNetwork)
  if (network === undefined) throw new Error('a transfer on a network that there is not')
  return network
}

/** The same at once for those whose block is at its depth when it is first seen: what only moves money and ends is written down once. */
async function onMinedAndFinal(ctx: Work, tx: Tx, seen: readonly Seen[]): Promise<readonly TransferRow[]> {
  const [plain, others] = parted(seen, ({ step, transfer, receipt }) => {
    return movesMoney(step) && !isFollowed(transfer) && faultOf(step, transfer, receipt) === undefined
  })
  if (others.length > 0) await onMined(ctx, tx, others)
  const ended = others.length > 0 ? await onFinal(ctx, tx, others) : []
  if (plain.length === 0) return ended
  await markStepsFinal(tx, plain.map(feeOfStep), ctx.clock.now())
  await endUnits(tx, calledBy(plain))
  const done = plain.map((one) => ({ ...one, seen: confirmedBy(one) }))
  tx.afterCommit(() =>
    tellWaiting(
      ctx.db,
      plain.map(({ transfer }) => transfer.id),
    ),
  )
  return [...ended, ...(await endOrAwait(ctx, tx, done))]
}

/** The transfers whose partner's call these are. */
function calledBy(seen: readonly Seen[]): TransferRow['id'][] {
  return seen.flatMap(({ step, transfer }) => (step.kind === 'partner' ? [transfer.id] : []))
}

function feeOfStep({ step, transfer, receipt }: Seen): StepFee {
  return { step, rawFee: feeOf(transfer, receipt) }
}

function confirmedBy({ step, transfer, transaction: { hash }, receipt }: Seen): SeenTransfer {
  const rawReceived = step.kind === 'partner' ? deliveredBy(transfer, receipt) : undefined
  return { transferId: transfer.id, hash, rawReceived }
}

/** Those that did not do what they were to, those after which the next step comes, and those that moved the money. */
function sorted(seen: readonly Seen[]) {
  const judged = seen.map((one) => ({ ...one, fault: faultOf(one.step, one.transfer, one.receipt) }))
  const faulty = judged.flatMap(({ fault, ...one }) => (fault === undefined ? [] : [{ ...one, fault }]))
  const [moved, preparing] = parted(
    judged.filter(({ fault }) => fault === undefined),
    ({ step }) => movesMoney(step),
  )
  return { faulty, moved, preparing: preparing.toSorted((left, right) => inOrder(left.step, right.step)) }
}

/** Lanes are taken in one order, so that none wait crosswise. */
function inOrder({ sender: left }: StepRow, { sender: right }: StepRow): number {
  return left < right ? -1 : Number(left > right)
}

function parted<T>(all: readonly T[], isFirst: (one: T) => boolean): readonly [T[], T[]] {
  return [all.filter(isFirst), all.filter((one) => !isFirst(one))]
}

/** Steps of one transfer come one after the other, each to the transfer as the one before left it. */
async function inTurns(
  tx: Tx,
  mined: readonly MinedTransaction[],
  work: (turn: readonly Seen[]) => Promise<void>,
): Promise<void> {
  const receipts = new Map(mined.map(({ transaction, receipt }) => [transaction.id, receipt]))
  let left = mined.map(({ transaction }) => transaction)
  while (left.length > 0) {
    const taken = await lockSteps(tx, left)
    const first = new Map(taken.toReversed().map((one) => [one.transfer.id, one]))
    const turn = [...first.values()].flatMap((one) => {
      const receipt = receipts.get(one.transaction.id)
      return receipt === undefined ? [] : [{ ...one, receipt }]
    })
    await work(turn)
    const done = new Set(turn.map(({ transaction }) => transaction))
    left = left.filter((transaction) => !done.has(transaction))
  }
}

/**
 * Whether this step says what becomes of the transfer. One that prepares it (a top-up, an approval) does until a step after it has its
 * transaction, and no longer: that one may move the money, whatever a reorganisation then makes of this one.
 */
async function isDecidedBy(tx: Tx, step: StepRow): Promise<boolean> {
  if (isAside(step)) return false
  return movesMoney(step) || !(await hasLaterStep(tx, step))
}

/** What is sent beside the steps that follow one another: it neither moves the money nor is waited for. */
function isAside({ kind }: StepRow): boolean {
  return kind === 'claim' || kind === 'refill' || kind === 'revoke'
}

function movesMoney({ kind }: StepRow): boolean {
  return kind === 'send' || kind === 'partner'
}

/** The steps of these transactions, in their order, and the transfers that they are of, locked until the database transaction ends. */
async function lockSteps(tx: Tx, transactions: readonly LaneTransaction[]): Promise<LockedStep[]> {
  const found = await listStepsOf(
    tx,
    transactions.map(({ id }) => id),
  )
  const steps = new Map(found.map((step) => [step.transactionId, step]))
  const rows = await lockTransfers(tx, [...new Set(found.map(({ transferId }) => transferId))])
  const transfers = new Map(rows.map((row) => [row.id, row]))
  return transactions.map((transaction) => {
    const step = steps.get(transaction.id)
    const transfer = step && transfers.get(step.transferId)
    if (step === undefined || transfer === undefined) throw new Error('a transaction of no transfer')
    return { transaction, step, transfer }
  })
}

/**
 * Why a block says that the step did not do what it was to: it reverted, or it went through and the token did not tell of this
 * transfer (a token that takes a part, Tempo's guard of receive policies, which keeps the money).
 */
function faultOf(step: StepRow, transfer: TransferRow, receipt: Receipt): string | undefined {
  if (receipt.status !== 'success') return movesMoney(step) ? 'reverted' : `${step.kind}-reverted`
  if (step.kind === 'partner' && !isFollowed(transfer))
    return deliveredBy(transfer, receipt) < (transfer.rawOutMin ?? 0n) ? 'not-received' : undefined
  const token = tokenOf(transfer)
  if (step.kind !== 'send' || token === undefined) return undefined
  const isMoved = receipt.logs.some((log) => {
    const moved = sameAddress(log.address, token.address) ? decodeTransferLog(log) : undefined
    if (moved === undefined || moved.value !== transfer.rawAmount) return false
    return sameAddress(moved.from, transfer.fromAddress) && sameAddress(moved.to, transfer.toAddress)
  })
  return isMoved ? undefined : 'not-received'
}

/** What a swap's block brought the recipient of the token that was asked for, by the token's own logs. */
function deliveredBy({ toNetwork, toToken, toAddress }: TransferRow, receipt: Receipt): bigint {
  const network = networkByName(toNetwork)
  const token = network === undefined ? undefined : tokenBySymbol(network, toToken)
  if (network === undefined || token === undefined) return 0n
  return deliveredTo({ network, token: token.address, account: toAddress }, receipt.logs)
}

/** The token that moves; undefined for the chain's own coin. */
function tokenOf({ fromNetwork, fromToken }: TransferRow) {
  const network = networkByName(fromNetwork)
  return network === undefined ? undefined : tokenBySymbol(network, fromToken)
}

/** Tempo's account of fees, to which each transaction's payer sends one in the token that it pays with. */
const tempoFeeManager = '0xfeec000000000000000000000000000000000000'

/** In wei; on Tempo in the smallest unit of the token that moves, which pays for it. */
function feeOf(transfer: TransferRow, receipt: Receipt): bigint {
  const network = networkByName(transfer.fromNetwork)
  if (network?.nativeCoin !== null) return costOf(receipt)
  const token = tokenOf(transfer)
  return receipt.logs
    .filter(({ address }) => token !== undefined && sameAddress(address, token.address))
    .map((log) => decodeTransferLog(log))
    .filter((moved) => moved !== undefined)
    .filter(({ from, to }) => sameAddress(from, transfer.fromAddress) && sameAddress(to, tempoFeeManager))
    .reduce((sum, { value }) => sum + value, 0n)
}

/** Gives the next step its transaction, in the transaction that saw the one before done; once, since a step is assigned once. */
async function goOn(ctx: Work, tx: Tx, transfer: TransferRow): Promise<void> {
  const network = networkByName(transfer.fromNetwork)
  const next = await findNextStep(tx, transfer.id)
  if (next === undefined || network === undefined || transfer.endedAt !== null) return
  // A partner's call is tried first, which no transaction of the database waits for; and one that is too late is ended there.
  if (next.kind === 'partner' || isExpired(ctx, transfer)) return setLookAt(tx, transfer.id, ctx.clock.now())
  const { sender, toAddress: to, data, value, gasLimit } = next
  const planned = { network, to, data: bytesToHex(data), value, gasLimit, purpose: transferPurpose }
  const transactionId = await ctx.lanes.plan(tx, sender, planned)
  if (!(await assignStep(tx, next, transactionId))) throw new Error('a step of a transfer was given two transactions')
  await assignReservations(tx, { subjectId: transfer.id, part: next.position }, transactionId)
  tx.afterCommit(() => ctx.lanes.notify(network))
}

import {
  decodeTransferLog,
  isFinalAtDepth,
  networkByName,
  requireNetwork,
  sameAddress,
  tempoFeeManager,
  tokenBySymbol,
} from '@purser/protocol'
import { feeInToken } from '../../chain/fees/costs.ts'
import type { LaneHandler, LaneTransaction, MinedTransaction, Receipt } from '../../chain/port.ts'
import type { ActingCtx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { systemCtx } from '../../platform/work/runner.ts'
import { lockCovered } from '../funds/index.ts'
import { costOfReceipt } from '../plans/index.ts'
import { awaitFinality, endOrAwait, isFollowed } from './ending.ts'
import { beginStep, isExpired } from './follow.ts'
import {
  markConfirmed,
  markPending,
  markStepFees,
  markStepsDone,
  markStepsFinal,
  markStepsSent,
  type SeenTransfer,
  type Settled,
  type StepFee,
} from './outcome-store.ts'
import { endAllowanceTurns, markLeft, setNextPollAt } from './partner-store.ts'
import type { Ctx, Deps } from './ports.ts'
import { deliveredTo } from './refund-proof.ts'
import {
  findNextStep,
  hasLaterStep,
  listStepsOf,
  lockStepsOf,
  type StepRow,
  type TransferRow,
  transferPurpose,
} from './store.ts'
import { leaveUnknown } from './unknown.ts'

type Work = Omit<Ctx, 'tenant'>

/**
 * Lane handler for the transactions of transfers. It runs inside the database transaction that marks each. The transfers' rows are locked
 * first, so that block updates and responses are serialized.
 */
export function transferHandler(deps: Deps): LaneHandler {
  const ctx = systemCtx(deps)
  return {
    purpose: transferPurpose,
    onSent: (tx, transactions) => markStepsSent(tx, transactions),
    coverRaise: (transaction, more) => coverRaise(ctx, transaction, more),
    onMined: (tx, mined) => inSequence(tx, mined, (turn) => onMined(ctx, tx, turn)),
    async onReorganized(tx, transactions) {
      const undone = await lockSteps(tx, transactions)
      await markStepFees(tx, undone.map(withoutFee))
      for (const { step, transfer } of undone) if (await isDecidedBy(tx, step)) await markPending(tx, transfer.id, null)
    },
    async onReplaced(tx, transactions) {
      const replaced = await lockSteps(tx, transactions)
      await markStepFees(tx, replaced.map(withoutFee))
      for (const { step, transfer } of replaced) {
        if (!(await isDecidedBy(tx, step))) await markStepsDone(tx, [step], ctx.clock.now())
        else if (transfer.endedAt === null) await leaveUnknown(ctx, tx, transfer)
      }
    },
    onFinal: (tx, mined) => inSequence(tx, mined, (turn) => onFinal(ctx, tx, turn)),
    onMinedAndFinal: (tx, mined) => inSequence(tx, mined, (turn) => onMinedAndFinal(ctx, tx, turn)),
  }
}

interface LockedStep {
  readonly transaction: LaneTransaction
  readonly step: StepRow
  readonly transfer: TransferRow
}

type Seen = LockedStep & { readonly receipt: Receipt }

/** Applies block data that may still be reorganized. */
async function onMined(
  ctx: Pick<Work, 'clock' | 'lanes' | 'outcomeWaiters'>,
  tx: Tx,
  seen: readonly Seen[],
): Promise<void> {
  const own = seen.filter(({ step }) => step.kind !== 'claim')
  await markStepFees(tx, own.map(feeOfStep))
  tx.afterCommit(() => ctx.outcomeWaiters.wake())
  const { faulty, preparing, moved } = splitByOutcome(own.filter(({ step }) => !isAuxiliary(step)))
  for (const { step, transfer, fault } of faulty)
    if (await isDecidedBy(tx, step)) await markPending(tx, transfer.id, fault)
  for (const { transfer } of preparing) await advance(ctx, tx, transfer)
  const now = ctx.clock.now()
  const [followed, ended] = partitioned(moved, ({ transfer }) => isFollowed(transfer))
  for (const { transfer, transaction } of followed) await markLeft(tx, transfer.id, { hash: transaction.hash, now })
  const reported = await markConfirmed(tx, ended.map(seenBy(ctx)), now)
  tx.afterCommit(() => ctx.outcomeWaiters.report(reported))
}

/** Applies block data at its final depth. */
async function onFinal(
  ctx: ActingCtx & Pick<Work, 'db' | 'outcomeWaiters'>,
  tx: Tx,
  seen: readonly Seen[],
): Promise<void> {
  const now = ctx.clock.now()
  const [claims, own] = partitioned(seen, ({ step }) => step.kind === 'claim')
  await markStepsDone(
    tx,
    claims.map(({ step }) => step),
    now,
  )
  await markStepsFinal(tx, own.map(feeOfStep), now)
  const { faulty, moved } = splitByOutcome(seen.filter(({ step }) => !isAuxiliary(step)))
  const failed: Decided[] = []
  for (const { fault, ...one } of faulty) if (await isDecidedBy(tx, one.step)) failed.push({ ...one, fault })
  const [followed, over] = partitioned(moved, ({ transfer }) => isFollowed(transfer))
  for (const { transfer } of followed) await setNextPollAt(tx, transfer.id, now)
  // The approval is used up: the next transfer at the same contract need not wait for finality or delivery.
  await endCalled(tx, moved)
  await awaitSettled(ctx, tx, followed)
  await settle(ctx, tx, [...failed, ...over])
}

/** Outcome of a deciding step's block: a failure, or success; and the block data and the step's fee, if they are new. */
type Decided = Seen & { readonly fault?: string | undefined } & Pick<Settled, 'seen' | 'fee'>

async function settle(
  ctx: ActingCtx & Pick<Work, 'db' | 'outcomeWaiters'>,
  tx: Tx,
  decided: readonly Decided[],
): Promise<void> {
  const awaited = new Set(decided.flatMap(({ seen }) => (seen?.isReported === true ? [seen.transferId] : [])))
  for (const [network, some] of Map.groupBy(decided, ({ transfer }) => requireNetwork(transfer.fromNetwork))) {
    const rows = await endOrAwait(ctx, tx, network, some.map(settledBy))
    const reported = rows.filter(({ id }) => awaited.has(id))
    tx.afterCommit(() => ctx.outcomeWaiters.report(reported))
  }
}

async function awaitSettled(ctx: Pick<Work, 'clock'>, tx: Tx, decided: readonly Decided[]): Promise<void> {
  const awaited = decided.filter(({ transfer }) => !isFinalAtDepth(requireNetwork(transfer.fromNetwork)))
  if (awaited.length > 0) await awaitFinality(ctx, tx, awaited.map(settledBy))
}

function settledBy({ transfer, transaction, receipt, fault, seen, fee }: Decided): Settled {
  const block = { number: receipt.blockNumber, hash: receipt.blockHash }
  return { transferId: transfer.id, transactionId: transaction.id, block, fault, seen, fee }
}

/** Applies both updates at once if the block is already at its depth when first seen, so that simple transfers are written once. */
async function onMinedAndFinal(
  ctx: ActingCtx & Pick<Work, 'db' | 'lanes' | 'outcomeWaiters'>,
  tx: Tx,
  seen: readonly Seen[],
): Promise<void> {
  const [plain, others] = partitioned(seen, ({ step, transfer, receipt }) => {
    return movesMoney(step) && !isFollowed(transfer) && faultOf(step, transfer, receipt) === undefined
  })
  if (others.length > 0) {
    await onMined(ctx, tx, others)
    await onFinal(ctx, tx, others)
  }
  if (plain.length === 0) return
  await endCalled(tx, plain)
  const seenOf = seenBy(ctx)
  const done = plain.map((one) => ({ ...one, seen: seenOf(one), fee: feeOfStep(one) }))
  await settle(ctx, tx, done)
  tx.afterCommit(() => ctx.outcomeWaiters.resolve(plain.map(({ transfer }) => transfer.id)))
}

/** Ends the turns of the transfers whose partner call these steps are. */
async function endCalled(tx: Tx, seen: readonly Seen[]): Promise<void> {
  const called = seen.flatMap(({ step, transfer }) => (step.kind === 'partner' ? [transfer.id] : []))
  if (called.length > 0) await endAllowanceTurns(tx, called)
}

function feeOfStep({ step, transfer, receipt }: Seen): StepFee {
  return { step, rawFee: feeOf(transfer, receipt) }
}

function withoutFee({ step }: LockedStep): StepFee {
  return { step, rawFee: 0n }
}

/** The data of a block for a transfer. A caller of this process who waits for the transfer gets it as the response. */
function seenBy({ outcomeWaiters }: Pick<Work, 'outcomeWaiters'>): (seen: Seen) => SeenTransfer {
  return ({ step, transfer, transaction: { hash }, receipt }) => {
    const rawReceived = step.kind === 'partner' ? deliveredBy(transfer, receipt) : undefined
    return { transferId: transfer.id, hash, rawReceived, isReported: outcomeWaiters.isAwaited(transfer.id) }
  }
}

/** Splits steps into those that failed, those with a next step, and those that moved the money. */
function splitByOutcome(seen: readonly Seen[]) {
  const judged = seen.map((one) => ({ ...one, fault: faultOf(one.step, one.transfer, one.receipt) }))
  const faulty = judged.flatMap(({ fault, ...one }) => (fault === undefined ? [] : [{ ...one, fault }]))
  const [moved, preparing] = partitioned(
    judged.filter(({ fault }) => fault === undefined),
    ({ step }) => movesMoney(step),
  )
  return { faulty, moved, preparing: preparing.toSorted((left, right) => inOrder(left.step, right.step)) }
}

/** Lanes are processed in a fixed order, so that none deadlock. */
function inOrder({ sender: left }: StepRow, { sender: right }: StepRow): number {
  return left < right ? -1 : Number(left > right)
}

function partitioned<T>(all: readonly T[], isFirst: (one: T) => boolean): readonly [T[], T[]] {
  return [all.filter(isFirst), all.filter((one) => !isFirst(one))]
}

/** Applies several steps of one transfer sequentially, each to the state after the previous one. */
async function inSequence(
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
 * Whether this step decides the transfer. A preparing step (a top-up, an approval) does so only until a later step has its transaction:
 * that one may move the money, whatever a reorganization does to this one.
 */
async function isDecidedBy(tx: Tx, step: StepRow): Promise<boolean> {
  if (isAuxiliary(step)) return false
  return movesMoney(step) || !(await hasLaterStep(tx, step))
}

/** Whether a step is auxiliary: it neither moves the money nor is waited for. */
function isAuxiliary({ kind }: StepRow): boolean {
  return kind === 'claim' || kind === 'refill' || kind === 'revoke'
}

function movesMoney({ kind }: StepRow): boolean {
  return kind === 'send' || kind === 'partner'
}

/** The steps of these transactions, in their order, with their transfers, locked until the database transaction ends. */
async function lockSteps(tx: Tx, transactions: readonly LaneTransaction[]): Promise<LockedStep[]> {
  const ids = transactions.map(({ id }) => id)
  const found = new Map((await lockStepsOf(tx, ids)).map((one) => [one.step.transactionId, one]))
  return transactions.map((transaction) => {
    const one = found.get(transaction.id)
    if (one === undefined) throw new Error('a transaction without a transfer')
    return { transaction, ...one }
  })
}

/**
 * Returns why the step failed according to its block: it reverted, or it succeeded without a token log of this transfer (a token that takes a fee,
 * Tempo's guard of receive policies, which keeps the money).
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

/** Amount of the requested token that a swap's block brought the recipient, from the token's own logs. */
function deliveredBy({ toNetwork, toToken, toAddress }: TransferRow, receipt: Receipt): bigint {
  const network = networkByName(toNetwork)
  const token = network === undefined ? undefined : tokenBySymbol(network, toToken)
  if (network === undefined || token === undefined) return 0n
  return deliveredTo({ network, token: token.address, account: toAddress }, receipt.logs)
}

/** The token that moves; undefined for the chain's native coin. */
function tokenOf({ fromNetwork, fromToken }: TransferRow) {
  const network = networkByName(fromNetwork)
  return network === undefined ? undefined : tokenBySymbol(network, fromToken)
}

/** In wei; on Tempo in the smallest unit of the token that moves, which pays for it. */
function feeOf(transfer: TransferRow, receipt: Receipt): bigint {
  const network = networkByName(transfer.fromNetwork)
  if (network?.nativeCoin !== null) return costOfReceipt(receipt)
  const token = tokenOf(transfer)
  return receipt.logs
    .filter(({ address }) => token !== undefined && sameAddress(address, token.address))
    .map((log) => decodeTransferLog(log))
    .filter((moved) => moved !== undefined)
    .filter(({ from, to }) => sameAddress(from, transfer.fromAddress) && sameAddress(to, tempoFeeManager))
    .reduce((sum, { value }) => sum + value, 0n)
}

/**
 * Assigns the next step its transaction, in the database transaction that saw the previous step done. Idempotent, since a step is assigned
 * once.
 */
async function advance(ctx: Pick<Work, 'clock' | 'lanes'>, tx: Tx, transfer: TransferRow): Promise<void> {
  const network = networkByName(transfer.fromNetwork)
  const next = await findNextStep(tx, transfer.id)
  if (next === undefined || network === undefined || transfer.endedAt !== null) return
  // A partner's call is simulated first, outside any database transaction; an expired one ends there.
  if (next.kind === 'partner' || isExpired(ctx, transfer)) return setNextPollAt(tx, transfer.id, ctx.clock.now())
  await beginStep(ctx, tx, next, { network, gasLimit: next.gasLimit })
}

/**
 * Whether a wallet on a network without a native coin can pay a fee that is higher by `more` (1e-18 US dollars) for a waiting step, from its
 * available balance. The returned function decides under the lock of the wallet's funds, in the transaction that stores the new bytes.
 */
async function coverRaise(
  ctx: Pick<Ctx, 'db' | 'deposits' | 'readFunds'>,
  { id, network: name }: LaneTransaction,
  more: bigint,
): Promise<(tx: Tx) => Promise<boolean>> {
  const network = requireNetwork(name)
  const [found] = await listStepsOf(ctx.db, [id])
  const coin = found === undefined ? undefined : tokenBySymbol(network, found.transfer.fromToken)
  if (found === undefined || coin === undefined) throw new Error('a transaction without a transfer of a token')
  const { organisationId, environment, walletId } = found.transfer
  const owner = found.step.sender
  const asset = { tenant: { organisationId, environment }, network, walletId, owner, coin }
  const { snapshot } = await ctx.readFunds(network, [asset])
  const want = { asset, rawAmount: feeInToken(more, 1n, coin.decimals), gasLimit: 0n, dataBytes: 0 }
  return async (tx) => (await lockCovered(ctx, tx, [{ snapshot, wants: [want] }]))[0] === true
}

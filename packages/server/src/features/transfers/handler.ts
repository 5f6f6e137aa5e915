import { bytesToHex, decodeTransferLog, networkByName, sameAddress, tokenBySymbol } from '@purser/protocol'
import type { LaneHandler, LaneTransaction, Receipt } from '../../chain/port.ts'
import type { Ctx, Deps } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { systemCtx } from '../../platform/work/runner.ts'
import { end } from './ending.ts'
import { isExpired, isFollowed, transferPurpose } from './follow.ts'
import { markLeft, markStepDone, markStepFee, setLookAt } from './route-store.ts'
import {
  assignStep,
  findNextStep,
  findStepOf,
  hasLaterStep,
  lockTransfer,
  markConfirmed,
  markPending,
  markSent,
  type StepRow,
  type TransferRow,
} from './store.ts'

type Work = Omit<Ctx, 'tenant'>

/**
 * What the lanes do with the transactions of transfers, inside the database transaction that marks each. The transfer's row is locked
 * first, so that what a block says and what a caller is told come one after the other.
 */
export function transferHandler(deps: Deps): LaneHandler {
  const ctx = systemCtx(deps)
  return {
    purpose: transferPurpose,
    async onSent(tx, transaction) {
      const { step } = await held(tx, transaction)
      if (movesMoney(step)) await markSent(tx, step.transferId, transaction.hash)
    },
    async onMined(tx, transaction, receipt) {
      const { step, transfer } = await held(tx, transaction)
      if (step.kind === 'claim') return
      await markStepFee(tx, step, feeOf(transfer, receipt))
      const fault = faultOf(step, transfer, receipt)
      if (fault !== undefined) return (await isDecidedBy(tx, step)) ? markPending(tx, transfer.id, fault) : undefined
      if (!movesMoney(step)) return goOn(ctx, tx, transfer)
      const seen = { hash: transaction.hash, now: ctx.clock.now() }
      if (isFollowed(transfer)) return markLeft(tx, transfer.id, seen)
      const rawReceived = step.kind === 'partner' ? deliveredBy(transfer, receipt) : undefined
      await markConfirmed(tx, transfer.id, { ...seen, rawReceived })
    },
    async onReorganised(tx, transaction) {
      const { step, transfer } = await held(tx, transaction)
      if (await isDecidedBy(tx, step)) await markPending(tx, transfer.id, null)
    },
    async onDisplaced(tx, transaction) {
      const { step, transfer } = await held(tx, transaction)
      await markStepDone(tx, step, ctx.clock.now())
      if (await isDecidedBy(tx, step)) await end(ctx, tx, transfer.id, 'nonce-used-elsewhere')
    },
    async onFinal(tx, transaction, receipt) {
      const { step, transfer } = await held(tx, transaction)
      await markStepDone(tx, step, ctx.clock.now())
      if (step.kind === 'claim') return
      const fault = faultOf(step, transfer, receipt)
      if (fault !== undefined) return (await isDecidedBy(tx, step)) ? end(ctx, tx, transfer.id, fault) : undefined
      if (!movesMoney(step)) return
      if (isFollowed(transfer)) return setLookAt(tx, transfer.id, ctx.clock.now())
      await end(ctx, tx, transfer.id, undefined)
    },
  }
}

/**
 * Whether this step says what becomes of the transfer. One that prepares it (a top-up, an approval) does until a step after it has its
 * transaction, and no longer: that one may move the money, whatever a reorganisation then makes of this one.
 */
async function isDecidedBy(tx: Tx, step: StepRow): Promise<boolean> {
  if (step.kind === 'claim') return false
  return movesMoney(step) || !(await hasLaterStep(tx, step))
}

function movesMoney({ kind }: StepRow): boolean {
  return kind === 'send' || kind === 'partner'
}

async function held(
  tx: Tx,
  { id }: LaneTransaction,
): Promise<{ readonly step: StepRow; readonly transfer: TransferRow }> {
  const step = await findStepOf(tx, id)
  if (step === undefined) throw new Error('a transaction of no transfer')
  return { step, transfer: await lockTransfer(tx, step.transferId) }
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
  if (token === undefined) return 0n
  return receipt.logs
    .map((log) => (sameAddress(log.address, token.address) ? decodeTransferLog(log) : undefined))
    .reduce((sum, moved) => {
      if (moved === undefined) return sum
      const came = sameAddress(moved.to, toAddress) ? moved.value : 0n
      return sum + came - (sameAddress(moved.from, toAddress) ? moved.value : 0n)
    }, 0n)
}

/** The token that moves; undefined for the chain's own coin. */
function tokenOf({ fromNetwork, fromToken }: TransferRow) {
  const network = networkByName(fromNetwork)
  return network === undefined ? undefined : tokenBySymbol(network, fromToken)
}

/** Tempo's account of fees, to which each transaction's payer sends one in the token that it pays with. */
const tempoFeeManager = '0xfeec000000000000000000000000000000000000'

/** In wei; on Tempo in the smallest unit of the token. */
function feeOf(transfer: TransferRow, receipt: Receipt): bigint {
  const network = networkByName(transfer.fromNetwork)
  if (network?.nativeCoin !== null) return receipt.gasUsed * receipt.effectiveGasPrice
  return receipt.logs
    .map((log) => decodeTransferLog(log))
    .reduce(
      (sum, moved) => (moved !== undefined && sameAddress(moved.to, tempoFeeManager) ? sum + moved.value : sum),
      0n,
    )
}

/** Gives the next step its transaction, in the transaction that saw the one before done; once, since a step is assigned once. */
async function goOn(ctx: Work, tx: Tx, transfer: TransferRow): Promise<void> {
  const network = networkByName(transfer.fromNetwork)
  const next = await findNextStep(tx, transfer.id)
  if (next === undefined || network === undefined || transfer.endedAt !== null) return
  // A partner's call is tried first, which no transaction of the database waits for.
  if (next.kind === 'partner') return setLookAt(tx, transfer.id, ctx.clock.now())
  if (isExpired(ctx, transfer)) return end(ctx, tx, transfer.id, 'quote-expired')
  const { sender, toAddress: to, data, value, gasLimit } = next
  const planned = { network, to, data: bytesToHex(data), value, gasLimit, purpose: transferPurpose }
  const transactionId = await ctx.accountLanes.plan(tx, sender, planned)
  if (!(await assignStep(tx, next, transactionId))) throw new Error('a step of a transfer was given two transactions')
  tx.afterCommit(() => ctx.accountLanes.nudge(network))
}

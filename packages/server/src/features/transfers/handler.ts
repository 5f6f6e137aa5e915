import {
  bytesToHex,
  decodeTransferLog,
  formatAmount,
  networkByName,
  sameAddress,
  tokenBySymbol,
} from '@purser/protocol'
import type { LaneHandler, LaneTransaction, Receipt } from '../../chain/port.ts'
import type { Ctx, Deps } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { publishEvent } from '../../platform/events.ts'
import { forTenant, systemCtx } from '../../platform/work/runner.ts'
import { releasePolicy } from '../wallets/index.ts'
import {
  assignStep,
  findNextStep,
  findStepOf,
  lockTransfer,
  markConfirmed,
  markEnded,
  markPending,
  markSent,
  markTold,
  type StepRow,
  type TransferId,
  type TransferRow,
} from './store.ts'
import { transferPurpose } from './transfer.ts'

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
      if (step.kind === 'send') await markSent(tx, step.transferId, transaction.hash)
    },
    async onMined(tx, transaction, receipt) {
      const { step, transfer } = await held(tx, transaction)
      const fault = faultOf(step, transfer, receipt)
      if (fault !== undefined) return markPending(tx, transfer.id, fault)
      if (step.kind === 'top-up') return goOn(ctx, tx, transfer)
      const rawFee = feeOf(transfer, receipt)
      await markConfirmed(tx, transfer.id, { hash: transaction.hash, rawFee, now: ctx.clock.now() })
    },
    async onReorganised(tx, transaction) {
      const { transfer } = await held(tx, transaction)
      await markPending(tx, transfer.id, null)
    },
    async onDisplaced(tx, transaction) {
      const { transfer } = await held(tx, transaction)
      await end(ctx, tx, transfer.id, 'nonce-used-elsewhere')
    },
    async onFinal(tx, transaction, receipt) {
      const { step, transfer } = await held(tx, transaction)
      const fault = faultOf(step, transfer, receipt)
      if (fault !== undefined || step.kind === 'send') await end(ctx, tx, transfer.id, fault)
    },
  }
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
  if (receipt.status !== 'success') return step.kind === 'top-up' ? 'top-up-reverted' : 'reverted'
  const token = tokenOf(transfer)
  if (step.kind === 'top-up' || token === undefined) return undefined
  const isMoved = receipt.logs.some((log) => {
    const moved = sameAddress(log.address, token.address) ? decodeTransferLog(log) : undefined
    if (moved === undefined || moved.value !== transfer.rawAmount) return false
    return sameAddress(moved.from, transfer.fromAddress) && sameAddress(moved.to, transfer.toAddress)
  })
  return isMoved ? undefined : 'not-received'
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
  const { sender, toAddress: to, data, value, gasLimit } = next
  const planned = { network, to, data: bytesToHex(data), value, gasLimit, purpose: transferPurpose }
  const transactionId = await ctx.accountLanes.plan(tx, sender, planned)
  if (!(await assignStep(tx, next, transactionId))) throw new Error('a step of a transfer was given two transactions')
  tx.afterCommit(() => ctx.accountLanes.nudge(network))
}

async function end(ctx: Work, tx: Tx, transferId: TransferId, fault: string | undefined): Promise<void> {
  const now = ctx.clock.now()
  await markEnded(tx, transferId, { status: fault === undefined ? 'confirmed' : 'failed', reason: fault ?? null, now })
  const ended = await lockTransfer(tx, transferId)
  if (isBack(ended)) await releasePolicy(tx, ended, transferId, now)
  if (ended.answered !== null && !isAsTold(ended)) await tell(ctx, tx, ended)
}

/** Whether the money is where it was; what a token or Tempo's guard took and did not deliver has left the wallet, and stays counted. */
function isBack({ status, reason }: TransferRow): boolean {
  return status === 'failed' && reason !== 'not-received'
}

/** A block that was told of may be undone, and the next one say something else. */
function isAsTold({ answered, status }: TransferRow): boolean {
  return answered === (status === 'confirmed' ? 'confirmed' : 'reverted')
}

/** Tells how a transfer ended, once; the caller holds its row. */
export async function tell(ctx: Work, tx: Tx, transfer: TransferRow): Promise<void> {
  if (transfer.eventId !== null || transfer.endedAt === null) return
  const own = forTenant(ctx, transfer)
  const eventId =
    transfer.status === 'confirmed'
      ? await publishEvent(own, tx, 'transfer.completed', completed(transfer))
      : await publishEvent(own, tx, 'transfer.failed', failed(transfer))
  await markTold(tx, transfer.id, eventId)
}

function completed(transfer: TransferRow) {
  return {
    transactionId: transfer.id,
    walletId: transfer.walletId,
    route: transfer.route,
    fromChain: transfer.fromChain,
    toChain: transfer.toChain,
    amount: formatAmount(transfer.rawAmount, transfer.decimals),
    fromToken: transfer.fromToken,
    toToken: transfer.toToken,
    txHash: transfer.txHash,
    confirmedAt: (transfer.confirmedAt ?? transfer.endedAt)?.toISOString(),
  }
}

function failed(transfer: TransferRow) {
  const { id: transactionId, walletId, route, reason } = transfer
  return { transactionId, walletId, route, reason, refundTxHash: null, refundedAt: null }
}

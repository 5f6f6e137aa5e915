import { formatAmount } from '@purser/protocol'
import { instantOf } from '../../platform/clock.ts'
import type { Tx } from '../../platform/db/db.ts'
import { Problem } from '../../platform/errors.ts'
import { id } from '../../platform/ids.ts'
import type { RecurringTask } from '../../platform/recurring-task.ts'
import { forTenant, systemCtx } from '../../platform/work/runner.ts'
import { type ApprovalRow, applyDecisions, markApplied } from '../approvals/index.ts'
import { areCovered, contendedBy, dropReservations, lockOwners, retryOnContention } from '../funds/index.ts'
import { replaceClaimGas, replaceGas } from '../wallets/index.ts'
import { end } from './ending.ts'
import { storeGasless } from './gasless/begin.ts'
import { orderTaken } from './partner.ts'
import { advanceAllowanceQueue, leaveAllowanceQueue, replaceQuote, setNextPollAt } from './partner-store.ts'
import { allowanceKeyOf, claimOf, gasCostOf, planTransfer } from './plan.ts'
import type { Ctx, Deps, TransferPlan } from './ports.ts'
import { takeOrders } from './quote-store.ts'
import { storeSteps } from './record.ts'
import {
  deleteSteps,
  findTransfer,
  listSources,
  lockTransfer,
  markAccepted,
  type StepRow,
  type TransferId,
  type TransferRow,
} from './store.ts'

type Work = Omit<Ctx, 'tenant'>

/** Begins transfers that were approved, and fails those that were not. */
export const applyTransferDecisions: RecurringTask<Deps> = applyDecisions<Deps>({
  name: 'transfers.apply-approvals',
  kinds: ['transfer', 'refund'],
  slow: { limits: ({ begunTransfers }) => begunTransfers, listSources },
  begin: beginApproved,
  end: (ctx, approval, reason) =>
    ctx.db.tx(async (tx) => {
      const transfer = await lockTransfer(tx, subjectOf(approval))
      if (!(await markApplied(tx, approval.id, ctx.clock.now()))) return
      await end(ctx, tx, transfer.id, reason)
    }),
})

/** Plans an approved transfer again and stores its steps with the mark that the decision is applied: of two processes one stores them. */
async function beginApproved(ctx: Ctx, approval: ApprovalRow): Promise<void> {
  const transfer = await findTransfer(ctx.db, ctx.tenant, subjectOf(approval))
  if (transfer === undefined) throw new Error('an approval of a transfer that does not exist')
  await retryOnContention(ctx, async () => {
    const plan = await planAgain(ctx, transfer)
    await ctx.db.tx(async (tx) => {
      const { endedAt } = await lockWithFunds(ctx, tx, transfer.id, plan)
      const now = ctx.clock.now()
      if (!(await markApplied(tx, approval.id, now)) || endedAt !== null) return
      await markAccepted(tx, ctx.tenant, transfer.id, now)
      if (!(await storeAgain(ctx, tx, transfer.id, plan))) throw contendedBy(plan)
    })
  })
}

function subjectOf({ subjectId }: ApprovalRow): TransferId {
  return id('wtx').parse(subjectId)
}

/** Longest that a transfer waits for earlier ones at the same contract. */
const waitMsMax = 900_000
const pollMs = 500

/** Whether no step of a transfer has a nonce: it waits for another that approves and calls the same contract. */
export function isWaitingForAllowance(transfer: TransferRow, steps: readonly StepRow[]): boolean {
  return transfer.partner !== null && steps.every(({ transactionId }) => transactionId === null)
}

/**
 * Begins a transfer when it is the first in the queue of its allowance. Its quote may have expired, so it is planned again with at least the quoted amount;
 * if that is not possible, it fails before anything was paid. Idempotent: stored once, under the transfer's lock.
 */
export async function beginWaiting(ctx: Work, transfer: TransferRow): Promise<void> {
  const now = ctx.clock.now().getTime()
  const later = instantOf(now + pollMs)
  const state = await advanceAllowanceQueue(ctx.db, transfer.id)
  if (state === 'waiting') {
    const isLate = now - transfer.acceptedAt.getTime() > waitMsMax
    return ctx.db.tx(async (tx) => {
      const locked = await lockTransfer(tx, transfer.id)
      if (isLate && locked.endedAt === null) return end(ctx, tx, locked.id, 'quote-expired')
      await setNextPollAt(tx, locked.id, later)
    })
  }
  const own = forTenant(systemCtx(ctx), transfer)
  try {
    await beginFirst(own, transfer, later)
  } catch (error) {
    if (!(error instanceof Problem) || error.entry.status >= 500) throw error
    const { code } = error
    await ctx.db.tx(async (tx) => {
      const locked = await lockTransfer(tx, transfer.id)
      if (locked.endedAt === null) await end(ctx, tx, locked.id, code === 'price-too-low' ? 'quote-expired' : code)
    })
  }
}

async function beginFirst(ctx: Ctx, transfer: TransferRow, later: Date): Promise<void> {
  const plan = await planAgain(ctx, transfer)
  await ctx.db.tx(async (tx) => {
    const locked = await lockWithFunds(ctx, tx, transfer.id, plan)
    if (locked.endedAt !== null || locked.nextPollAt === null) return
    if (plan.quote === undefined || !(await storeAgain(ctx, tx, locked.id, plan)))
      await setNextPollAt(tx, locked.id, later)
  })
}

/**
 * Plans a stored transfer again, since prices, nonces and a partner's quote have changed while it waited. At least the amount that it was
 * accepted with must arrive.
 */
async function planAgain(ctx: Ctx, transfer: TransferRow): Promise<TransferPlan> {
  const { walletId: fromWalletId, fromChain, fromToken, toAddress, toChain, toToken, rawAmount, decimals } = transfer
  const request = { fromWalletId, fromChain, fromToken, toAddress, toChain, toToken }
  const floor = transfer.rawOutMin ?? rawAmount
  const amount = formatAmount(rawAmount, decimals)
  const plan = await planTransfer(ctx, { ...request, amount }, { readFloor: async () => floor, except: transfer.id })
  for (const { sender } of plan.steps) await ctx.lanes.prepare(plan.network, sender)
  return plan
}

/** Locks the funds that the plan takes, then the transfer. */
async function lockWithFunds(
  ctx: Pick<Ctx, 'tenant'>,
  tx: Tx,
  transferId: TransferId,
  plan: TransferPlan,
): Promise<TransferRow> {
  await lockOwners(
    tx,
    claimOf(ctx.tenant, plan, transferId).wants.map(({ asset }) => asset),
  )
  return lockTransfer(tx, transferId)
}

/**
 * Replaces what a transfer reserved and planned before by its new plan, in the transaction that has locked both. Returns false, and changes nothing,
 * if its funds no longer suffice.
 */
async function storeAgain(ctx: Ctx, tx: Tx, transferId: TransferId, plan: TransferPlan): Promise<boolean> {
  const [isCovered] = await areCovered(ctx, tx, [claimOf(ctx.tenant, plan, transferId)])
  if (isCovered !== true) return false
  if ((await takeOrders(tx, [{ transferId, plan }])).size > 0) throw orderTaken(ctx, plan)
  const { masterWalletId } = plan.source
  await replaceGas(ctx, tx, { masterWalletId, subjectId: transferId, gas: gasCostOf(plan) })
  await replaceClaimGas(ctx, tx, { masterWalletId, subjectId: transferId, gas: plan.claimGas })
  await dropReservations(tx, transferId)
  await deleteSteps(tx, transferId)
  if (allowanceKeyOf(plan) === undefined) await leaveAllowanceQueue(tx, transferId)
  if (plan.quote !== undefined) await replaceQuote(tx, transferId, plan.quote)
  const gasless = plan.steps.length === 0 ? [{ ctx, transferId, plan }] : []
  const { nonces, over } = await storeGasless(tx, gasless)
  if (over.length > 0) throw contendedBy(plan)
  await storeSteps(ctx, tx, [{ transferId, plan }], nonces)
  return true
}

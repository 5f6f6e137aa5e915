import { formatAmount } from '@purser/protocol'
import type { Tx } from '../../platform/db/db.ts'
import { id } from '../../platform/ids.ts'
import type { Recurring } from '../../platform/job.ts'
import { type ApprovalRow, applyDecisions, markApplied } from '../approvals/index.ts'
import { areCovered, dropReservations, lockOwners, retryOnContention } from '../funds/index.ts'
import { replaceGas } from '../wallets/index.ts'
import { end } from './ending.ts'
import { replaceQuote } from './outcome-store.ts'
import { orderTaken } from './partner.ts'
import { planTransfer } from './plan.ts'
import type { Ctx, Deps, TransferPlan } from './ports.ts'
import { takeOrders } from './quote-store.ts'
import { contendedBy } from './record.ts'
import { claimOf, gasCostOf, storeGasless, storeSteps } from './steps.ts'
import { findTransfer, listSources, lockTransfer, type TransferId, type TransferRow } from './store.ts'

/** Begins transfers that were approved, and fails those that were not. */
export const applyTransferDecisions: Recurring<Deps> = applyDecisions<Deps>({
  name: 'transfers.apply-approvals',
  kinds: ['transfer', 'refund'],
  slow: { limits: ({ begunTransfers }) => begunTransfers, listSources },
  begin,
  end: (ctx, approval, reason) =>
    ctx.db.tx(async (tx) => {
      const transfer = await lockTransfer(tx, subjectOf(approval))
      if (!(await markApplied(tx, approval.id, ctx.clock.now()))) return
      await end(ctx, tx, transfer.id, reason)
    }),
})

/**
 * Plans an approved transfer again, since prices, nonces and a partner's quote have changed while it waited, and stores its steps with the
 * mark that the decision is applied, in one transaction: of two processes one stores them.
 */
async function begin(ctx: Ctx, approval: ApprovalRow): Promise<void> {
  const transfer = await findTransfer(ctx.db, ctx.tenant, subjectOf(approval))
  if (transfer === undefined) throw new Error('an approval of a transfer that does not exist')
  await retryOnContention(ctx, async () => {
    const plan = await planAgain(ctx, transfer)
    for (const { sender } of plan.steps) await ctx.lanes.prepare(plan.network, sender)
    await ctx.db.tx((tx) => storeBegun(ctx, tx, approval, plan))
  })
}

function planAgain(ctx: Ctx, transfer: TransferRow): Promise<TransferPlan> {
  const { walletId: fromWalletId, fromChain, fromToken, toAddress, toChain, toToken, rawAmount, decimals } = transfer
  const request = { fromWalletId, fromChain, fromToken, toAddress, toChain, toToken }
  const floor = transfer.rawOutMin ?? rawAmount
  const amount = formatAmount(rawAmount, decimals)
  return planTransfer(ctx, { ...request, amount }, { readFloor: async () => floor, except: transfer.id })
}

async function storeBegun(ctx: Ctx, tx: Tx, approval: ApprovalRow, plan: TransferPlan): Promise<void> {
  const transferId = subjectOf(approval)
  const claim = claimOf(ctx.tenant, plan, transferId)
  await lockOwners(tx, [
    { network: plan.network.name, owner: plan.source.address },
    ...claim.wants.map(({ place }) => ({ network: place.network.name, owner: place.owner })),
  ])
  const { endedAt } = await lockTransfer(tx, transferId)
  if (!(await markApplied(tx, approval.id, ctx.clock.now())) || endedAt !== null) return
  const [isCovered] = await areCovered(ctx, tx, [claim])
  if (isCovered !== true) throw contendedBy(plan)
  if ((await takeOrders(tx, [{ transferId, plan }])).size > 0) throw orderTaken(ctx, plan)
  await dropReservations(tx, transferId)
  const { masterWalletId } = approval
  await replaceGas(ctx, tx, { masterWalletId, subjectId: transferId, gas: gasCostOf(plan) })
  if (plan.quote !== undefined) await replaceQuote(tx, transferId, plan.quote)
  const gasless = plan.steps.length === 0 ? [{ ctx, transferId, plan }] : []
  const { nonces, over } = await storeGasless(tx, gasless)
  if (over.length > 0) throw contendedBy(plan)
  await storeSteps(ctx, tx, [{ transferId, plan }], nonces)
}

function subjectOf({ subjectId }: ApprovalRow): TransferId {
  return id('wtx').parse(subjectId)
}

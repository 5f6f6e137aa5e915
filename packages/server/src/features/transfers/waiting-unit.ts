import { formatAmount } from '@purser/protocol'
import { instantOf } from '../../platform/clock.ts'
import { Problem } from '../../platform/errors.ts'
import { forTenant, systemCtx } from '../../platform/work/runner.ts'
import { areCovered, dropReservations, lockOwners } from '../funds/index.ts'
import { replaceGas } from '../wallets/index.ts'
import { end } from './ending.ts'
import { advanceUnit, leaveUnit, replaceQuote, setNextPollAt } from './outcome-store.ts'
import { orderTaken } from './partner.ts'
import { planTransfer } from './plan.ts'
import type { Ctx } from './ports.ts'
import { takeOrders } from './quote-store.ts'
import { claimOf, gasCostOf, storeSteps, unitOf } from './steps.ts'
import { deleteSteps, lockTransfer, type StepRow, type TransferRow } from './store.ts'

type Work = Omit<Ctx, 'tenant'>

/** Longest that a transfer waits for earlier ones at the same contract. */
const waitMsMax = 900_000
const pollMs = 500

/** Whether no step of a transfer has a nonce: it waits for another that approves and calls the same contract. */
export function isWaitingForUnit(transfer: TransferRow, steps: readonly StepRow[]): boolean {
  return transfer.partner !== null && steps.every(({ transactionId }) => transactionId === null)
}

/**
 * Begins a transfer when it is the first of its unit. Its quote may have expired, so it is planned again with at least the quoted amount;
 * if that is not possible, it fails before anything was paid. Idempotent: stored once, under the transfer's lock.
 */
export async function beginWaiting(ctx: Work, transfer: TransferRow): Promise<void> {
  const now = ctx.clock.now().getTime()
  const later = instantOf(now + pollMs)
  const state = await advanceUnit(ctx.db, transfer.id)
  if (state === 'waiting') {
    const isLate = now - transfer.createdAt.getTime() > waitMsMax
    return ctx.db.tx(async (tx) => {
      const locked = await lockTransfer(tx, transfer.id)
      if (isLate && locked.endedAt === null) return end(ctx, tx, locked.id, 'quote-expired')
      await setNextPollAt(tx, locked.id, later)
    })
  }
  const own = forTenant(systemCtx(ctx), transfer)
  try {
    await begin(own, transfer, later)
  } catch (error) {
    if (!(error instanceof Problem) || error.entry.status >= 500) throw error
    const { code } = error
    await ctx.db.tx(async (tx) => {
      const locked = await lockTransfer(tx, transfer.id)
      if (locked.endedAt === null) await end(ctx, tx, locked.id, code === 'price-too-low' ? 'quote-expired' : code)
    })
  }
}

async function begin(ctx: Ctx, transfer: TransferRow, later: Date): Promise<void> {
  const { fromNetwork, fromAddress, walletId: fromWalletId, fromToken, toAddress, toChain, toToken } = transfer
  const request = { fromWalletId, fromChain: transfer.fromChain, fromToken, toAddress, toChain, toToken }
  const amount = formatAmount(transfer.rawAmount, transfer.decimals)
  const floor = transfer.rawOutMin ?? transfer.rawAmount
  const plan = await planTransfer(ctx, { ...request, amount }, { readFloor: async () => floor, except: transfer.id })
  for (const { sender } of plan.steps) await ctx.lanes.prepare(plan.network, sender)
  await ctx.db.tx(async (tx) => {
    const claim = claimOf(ctx.tenant, plan, transfer.id)
    await lockOwners(tx, [
      { network: fromNetwork, owner: fromAddress },
      ...claim.wants.map(({ place }) => ({ network: place.network.name, owner: place.owner })),
    ])
    const locked = await lockTransfer(tx, transfer.id)
    if (locked.endedAt !== null || locked.lookAt === null) return
    const [isCovered] = await areCovered(ctx, tx, [claim])
    if (isCovered !== true || plan.quote === undefined) return setNextPollAt(tx, locked.id, later)
    if ((await takeOrders(tx, [{ transferId: locked.id, plan }])).size > 0) throw orderTaken(ctx, plan)
    const { masterWalletId } = plan.source
    await replaceGas(ctx, tx, { masterWalletId, subjectId: locked.id, gas: gasCostOf(plan) })
    await dropReservations(tx, locked.id)
    await deleteSteps(tx, locked.id)
    if (unitOf(plan) === undefined) await leaveUnit(tx, locked.id)
    await replaceQuote(tx, locked.id, plan.quote)
    await storeSteps(ctx, tx, [{ transferId: locked.id, plan }])
  })
}

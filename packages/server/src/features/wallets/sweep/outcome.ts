import type { Ctx } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { inLockOrder } from '../../../platform/db/lock-order.ts'
import { forTenant } from '../../../platform/work/runner.ts'
import { lockSweeps, markEnded, type TransferRow } from './lane-store.ts'
import { markCompleted } from './store.ts'

type System = Omit<Ctx, 'tenant'>
type End = Parameters<typeof markEnded>[2]

/** Ends transfers, their sweeps where they were the last, and writes one audit record per tenant, in the caller's transaction. */
export async function recordEnded(ctx: System, tx: Tx, transfers: readonly TransferRow[], end: End): Promise<void> {
  if (transfers.length === 0) return
  const sweepIds = [...new Set(transfers.map((transfer) => transfer.sweepId))]
  await lockSweeps(tx, sweepIds)
  const moved = await markEnded(tx, transfers, end)
  await markCompleted(tx, sweepIds, ctx.clock.now())
  const told = transfers.filter((transfer) => moved.has(transfer.childAddressId))
  const byTenant = Map.groupBy(told, ({ organisationId, environment }) => `${organisationId}/${environment}`)
  // Each record locks its organisation's log: in one order, since two networks may end sweeps of the same two at once.
  for (const [, own] of inLockOrder(byTenant)) await auditEnded(ctx, tx, own, end)
}

async function auditEnded(ctx: System, tx: Tx, transfers: readonly TransferRow[], end: End): Promise<void> {
  const first = transfers[0]
  if (first === undefined) return
  const { organisationId, environment } = first
  const { status, ...how } = end
  await forTenant(ctx, { organisationId, environment }).audit(tx, {
    action: `wallets.sweeps.${status}`,
    target: [...new Set(transfers.map((transfer) => transfer.sweepId))].join(' '),
    details: { ...how, children: transfers.map((transfer) => transfer.childAddressId) },
  })
}

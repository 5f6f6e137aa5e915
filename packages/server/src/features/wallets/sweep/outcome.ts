import { type Network, networkByName } from '@purser/protocol'
import type { Ctx } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { inLockOrder } from '../../../platform/db/lock-order.ts'
import { forTenant } from '../../../platform/work/runner.ts'
import { changeBudgets } from '../gasless.ts'
import { lockSweeps, markEnded } from './relay-store.ts'
import { markCompleted } from './store.ts'
import { lockPlanned } from './tempo-store.ts'
import type { TransferKey, TransferRow } from './transfer-store.ts'

type System = Omit<Ctx, 'tenant'>
type End = Parameters<typeof markEnded>[2]

/**
 * Ends transfers, their sweeps where they were the last, gives back the gas that they reserved, and writes one audit record per tenant, in the
 * caller's transaction.
 */
export async function recordEnded(ctx: System, tx: Tx, transfers: readonly TransferRow[], end: End): Promise<void> {
  if (transfers.length === 0) return
  const sweepIds = [...new Set(transfers.map((transfer) => transfer.sweepId))]
  await lockSweeps(tx, sweepIds)
  const ended = await markEnded(tx, transfers, end)
  await markCompleted(tx, sweepIds, ctx.clock.now())
  await changeBudgets(
    tx,
    ended.map((move) => ({ move, nanoUsd: -move.gasReservedNanoUsd })),
  )
  const endedIds = new Set<string>(ended.map(({ childAddressId }) => childAddressId))
  const audited = transfers.filter((transfer) => endedIds.has(transfer.childAddressId))
  const byTenant = Map.groupBy(audited, ({ organisationId, environment }) => `${organisationId}/${environment}`)
  // Each record locks its organisation's log: in one order, since two networks may end sweeps of two organisations at once.
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

/** Ends a transfer that nobody has signed: one that was signed or sent meanwhile is left. Sweeps are locked first wherever any of theirs end. */
export function endPlanned(ctx: System, transfer: TransferKey, reason: string): Promise<void> {
  return ctx.db.tx(async (tx) => {
    await lockSweeps(tx, [transfer.sweepId])
    const locked = await lockPlanned(tx, transfer, 'any')
    if (locked !== undefined) await recordEnded(ctx, tx, [locked], { status: 'failed', reason })
  })
}

/** The network of a stored sweep. */
export function networkOf(name: string): Network {
  const network = networkByName(name)
  if (network === undefined) throw new Error(`a sweep is on ${name}, which this build does not know`)
  return network
}

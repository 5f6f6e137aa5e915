import { type Network, networkByName } from '@purser/protocol'
import type { Ctx } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { inLockOrder } from '../../../platform/db/lock-order.ts'
import { endReservations } from '../../funds/index.ts'
import { type Closing, close, type TenantAudit } from '../../relayer/index.ts'
import { budgetChange } from '../gasless.ts'
import { type EndedRow, lockSweeps, markEnded, type TransferEnd } from './relay-store.ts'
import { markCompleted } from './store.ts'
import { lockPlanned } from './tempo-store.ts'
import { subjectOf, type TransferKey } from './transfer-store.ts'

type System = Omit<Ctx, 'tenant'>
/** How a transfer ended, and what its transaction cost the operator, in wei. */
export type End = TransferEnd & { readonly wei: bigint }

/** Ends, and reasons of failures, after which the authorization was used, or may have been seen by others and be used. */
const mayStillLeave: ReadonlySet<string> = new Set(['swept', 'not-received', 'transfer-failed'])

/**
 * Ends transfers, and their sweeps where they were the last, in the caller's transaction. Returns what it closes with: the gas that they reserved
 * and did not use, and one audit record for each tenant and outcome.
 */
export async function endTransfers(ctx: System, tx: Tx, ends: readonly End[]): Promise<Closing> {
  const sweepIds = [...new Set(ends.map(({ sweepId }) => sweepId))]
  await lockSweeps(tx, sweepIds)
  const ended = await markEnded(tx, ends)
  await endReservations(
    tx,
    ended.map((row) => ({ subjectId: subjectOf(row), isBack: !mayStillLeave.has(row.failureReason ?? 'swept') })),
  )
  await markCompleted(tx, sweepIds, ctx.clock.now())
  const wei = new Map(ends.map((end) => [subjectOf(end), end.wei]))
  const gas = ended.map((row) => {
    const used = ctx.gasPrices.worthOf(networkOf(row.network), wei.get(subjectOf(row)) ?? 0n)
    return budgetChange(row, used - row.gasReservedNanoUsd)
  })
  const groups = Map.groupBy(ended, ({ organisationId, environment, status, txHash, failureReason }) =>
    [organisationId, environment, status, txHash, failureReason].join(' '),
  )
  return { gas, audits: inLockOrder<readonly EndedRow[]>(groups).flatMap(([, own]) => auditOf(own)) }
}

function auditOf(ended: readonly EndedRow[]): TenantAudit[] {
  const [first] = ended
  if (first === undefined) return []
  const { organisationId, environment, status, txHash, failureReason } = first
  const how = status === 'swept' ? { txHash } : { reason: failureReason }
  const target = [...new Set(ended.map(({ sweepId }) => sweepId))].join(' ')
  const details = { ...how, children: ended.map(({ childAddressId }) => childAddressId) }
  return [{ tenant: { organisationId, environment }, entry: { action: `wallets.sweeps.${status}`, target, details } }]
}

/** `endTransfers` for a transaction that ends nothing else. */
export async function recordEnded(ctx: System, tx: Tx, ends: readonly End[]): Promise<void> {
  if (ends.length > 0) await close(ctx, tx, [await endTransfers(ctx, tx, ends)])
}

/** Ends a transfer that nobody has signed: one that was signed or sent meanwhile is left. Sweeps are locked first wherever any of theirs end. */
export function endPlanned(ctx: System, transfer: TransferKey, reason: string): Promise<void> {
  return ctx.db.tx(async (tx) => {
    await lockSweeps(tx, [transfer.sweepId])
    const locked = await lockPlanned(tx, transfer, 'any')
    if (locked !== undefined) await recordEnded(ctx, tx, [failedTransfer(locked, reason)])
  })
}

/** A transfer that ends without its money moving, and without a transaction that cost anything. */
export function failedTransfer({ sweepId, childAddressId }: TransferKey, reason: string): End {
  return { sweepId, childAddressId, status: 'failed', txHash: null, reason, wei: 0n }
}

/** The network of a stored sweep. */
export function networkOf(name: string): Network {
  const network = networkByName(name)
  if (network === undefined) throw new Error(`a sweep is on ${name}, which this build does not know`)
  return network
}

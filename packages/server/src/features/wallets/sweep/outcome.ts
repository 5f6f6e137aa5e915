import { requireNetwork } from '@purser/protocol'
import { type Auditing, appendAudit } from '../../../platform/audit.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { inLockOrder } from '../../../platform/db/lock-order.ts'
import { endReservations } from '../../funds/index.ts'
import { changeGasLast } from '../../plans/index.ts'
import { budgetChange } from '../gasless.ts'
import type { Ctx } from '../ports.ts'
import { type EndedRow, lockSweeps, markSweepsEnded, type TransferEnd } from './relay-store.ts'
import { markCompleted } from './store.ts'
import { lockPlanned } from './tempo-store.ts'
import { listFrozenAmounts, type SweepTransferRow, subjectOf, type TransferKey } from './transfer-store.ts'

export type EndingCtx = Auditing & Pick<Ctx, 'gasPrices'>

/** The end of a transfer, and the operator's cost of its transaction, in wei. */
export type End = TransferEnd & { readonly wei: bigint }

/**
 * Outcomes and failure reasons after which the authorization was used, or may still be used by somebody who knows it.
 */
const mayStillLeave: ReadonlySet<string> = new Set(['swept', 'not-received', 'transfer-failed'])

/**
 * Ends transfers, and their sweeps where they were the last, in the caller's transaction. The gas that they reserved and did
 * not use, and one audit record for each tenant and outcome, are written when it commits.
 */
export async function recordEnded(ctx: EndingCtx, tx: Tx, ends: readonly End[]): Promise<void> {
  if (ends.length === 0) return
  const sweepIds = [...new Set(ends.map(({ sweepId }) => sweepId))]
  await lockSweeps(tx, sweepIds)
  const ended = await markSweepsEnded(tx, ends)
  await endReservations(
    tx,
    ended.map((row) => ({ subjectId: subjectOf(row), isBack: !mayStillLeave.has(row.failureReason ?? 'swept') })),
  )
  await markCompleted(tx, sweepIds, ctx.clock.now())
  const wei = new Map(ends.map((end) => [subjectOf(end), end.wei]))
  const gas = ended.map((row) => {
    const used = ctx.gasPrices.worthOf(requireNetwork(row.network), wei.get(subjectOf(row)) ?? 0n)
    return budgetChange(row, used - row.gasReservedNanoUsd)
  })
  const groups = Map.groupBy(ended, ({ organisationId, environment, status, txHash, failureReason }) =>
    [organisationId, environment, status, txHash, failureReason].join(' '),
  )
  changeGasLast(tx, gas)
  for (const [, own] of inLockOrder<readonly EndedRow[]>(groups)) audit(ctx, tx, own)
}

function audit(ctx: Auditing, tx: Tx, ended: readonly EndedRow[]): void {
  const [first] = ended
  if (first === undefined) return
  const { organisationId, environment, status, txHash, failureReason } = first
  const how = status === 'swept' ? { txHash } : { reason: failureReason }
  const target = [...new Set(ended.map(({ sweepId }) => sweepId))].join(' ')
  const details = { ...how, children: ended.map(({ childAddressId }) => childAddressId) }
  const tenant = { organisationId, environment }
  appendAudit({ ...ctx, tenant }, tx, { action: `wallets.sweeps.${status}`, target, details })
}

/** Ends an unsigned transfer; one that was signed or sent meanwhile is not changed. Sweeps are locked before any of their transfers end. */
export function endPlanned(ctx: EndingCtx & Pick<Ctx, 'db'>, transfer: TransferKey, reason: string): Promise<void> {
  return ctx.db.tx(async (tx) => {
    await lockSweeps(tx, [transfer.sweepId])
    const locked = await lockPlanned(tx, transfer, 'any')
    if (locked !== undefined) await recordEnded(ctx, tx, [failedTransfer(locked, reason)])
  })
}

/** The end of a transfer whose money did not move, and which cost nothing. */
export function failedTransfer({ sweepId, childAddressId }: TransferKey, reason: string): End {
  return { sweepId, childAddressId, status: 'failed', txHash: null, reason, wei: 0n }
}

/**
 * Those transfers whose child had money frozen since the sweep was requested. The sweep takes the whole free balance, so money frozen
 * afterwards may be part of it: the transfer ends, and the next sweep takes the free balance.
 */
export async function frozenOnes<Row extends SweepTransferRow>(
  tx: Tx,
  transfers: readonly Row[],
): Promise<ReadonlySet<Row>> {
  const groups = Map.groupBy(transfers, (one) => `${one.organisationId}/${one.environment}/${one.network}/${one.asset}`)
  const found = new Set<Row>()
  for (const group of groups.values()) {
    const first = group[0]
    if (first === undefined) continue
    const { organisationId, environment, network, asset } = first
    const walletIds = group.map((transfer) => transfer.childAddressId)
    const frozen = await listFrozenAmounts(tx, { organisationId, environment }, { network, asset, walletIds })
    for (const transfer of group) {
      if ((frozen.get(transfer.childAddressId) ?? 0n) > transfer.frozenRawAmount) found.add(transfer)
    }
  }
  return found
}

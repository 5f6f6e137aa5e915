import { formatAmount, networkByName } from '@purser/protocol'
import { type AuditEntry, appendAudits } from '../../platform/audit.ts'
import type { Ctx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { inLockOrder } from '../../platform/db/lock-order.ts'
import { publishEvent } from '../../platform/events.ts'
import { endReservations } from '../funds/index.ts'
import type { TenantAudit } from '../relayer/index.ts'
import { releasePolicy, settleGas } from '../wallets/index.ts'
import { endUnits } from './approval-store.ts'
import { arrivedOf } from './arrived.ts'
import { markEnded, markTold, type TransferEnd } from './outcome-store.ts'
import { listGasCosts } from './route-store.ts'
import { lockTransfers, type TransferId, type TransferRow } from './store.ts'

/** What ending needs of a process: a worker's record, or the operator's. */
export type EndingCtx = Pick<Ctx, 'db' | 'clock' | 'random' | 'actor' | 'requestId' | 'eventsCommitted'>

/** Ends a transfer for good: confirmed, or failed for this reason. Told by an event where the answer said, or will say, something else. */
export async function end(ctx: EndingCtx, tx: Tx, transferId: TransferId, fault: string | undefined): Promise<void> {
  await auditEnds(ctx, tx, await endAll(ctx, tx, [{ transferId, fault }]))
}

/** The same for several, but for the audit log: answers what `auditEnds` is to write. */
export async function endAll(ctx: EndingCtx, tx: Tx, ends: readonly TransferEnd[]): Promise<readonly TransferRow[]> {
  if (ends.length === 0) return []
  const now = ctx.clock.now()
  const ended = await markEnded(tx, ends, now)
  const byThis = new Set(ended.map((row) => row.id))
  const others = ends.map(({ transferId }) => transferId).filter((transferId) => !byThis.has(transferId))
  const endedBefore = others.length === 0 ? [] : await lockTransfers(tx, others)
  const costs = await listGasCosts(
    tx,
    ended.map((row) => row.id),
  )
  await settleGas(tx, realGasOf(ended, costs))
  // Every step of a confirmed transfer has its nonce, by which it counts no more; a gasless one has no steps.
  const open = ended.filter(({ id, status }) => status !== 'confirmed' || !costs.has(id))
  await endReservations(
    tx,
    open.map((row) => ({ subjectId: row.id, isBack: isBack(row) })),
  )
  await endUnits(
    tx,
    ended.filter(({ partner, isRevokeDue }) => partner !== null && !isRevokeDue).map((row) => row.id),
  )
  for (const row of [...ended, ...endedBefore].toSorted(byId)) {
    if (isBack(row)) await releasePolicy(tx, row, row.id, now)
    if (isToBeTold(row)) await tell(ctx, tx, row)
  }
  // The withdrawal whose part a transfer is has records of its own.
  return ended.filter(({ purpose }) => purpose === 'transfer')
}

/** In 1e-18 of the coin; until now the most that they might cost counted against the wallets' policies. */
function realGasOf(ended: readonly TransferRow[], costs: ReadonlyMap<TransferId, bigint>) {
  return ended.flatMap((row) => {
    const raw = costs.get(row.id)
    return raw === undefined ? [] : [{ subjectId: row.id, attoAmount: raw * 10n ** BigInt(18 - gasDecimalsOf(row)) }]
  })
}

/** Coins have 18 decimals; on Tempo the token that moves pays for the gas. */
function gasDecimalsOf({ fromNetwork, decimals }: TransferRow): number {
  return networkByName(fromNetwork)?.nativeCoin === null ? decimals : 18
}

function byId({ id: left }: TransferRow, { id: right }: TransferRow): number {
  return left < right ? -1 : Number(left > right)
}

/**
 * Writes the ends into the audit logs. Last of all that the transaction does: whoever makes a transfer takes the lane and the policy's
 * counters first and the organisation's log after them, and the other way round two would wait for one another.
 */
export async function auditEnds(ctx: EndingCtx, tx: Tx, ended: readonly TransferRow[]): Promise<void> {
  const byTenant = Map.groupBy(ended, ({ organisationId, environment }) => `${organisationId}/${environment}`)
  for (const [, own] of inLockOrder(byTenant)) {
    const [first] = own
    if (first !== undefined) await appendAudits({ ...ctx, tenant: first }, tx, own.map(recordOf))
  }
}

/** What a transaction that closes by itself (`close` of the relayer) is to write of them. */
export function auditsOf(ended: readonly TransferRow[]): readonly TenantAudit[] {
  return ended.map((transfer) => {
    const { organisationId, environment } = transfer
    return { tenant: { organisationId, environment }, entry: recordOf(transfer) }
  })
}

function recordOf(transfer: TransferRow): AuditEntry {
  const { id: target, walletId: from, status, reason, txHash, destinationTxHash, refundTxHash } = transfer
  const how = Object.entries({ reason, txHash, destinationTxHash, refundTxHash }).filter(([, value]) => value !== null)
  return { action: `transfers.${status}`, target, details: { from, ...Object.fromEntries(how) } }
}

/** Whether the money is where it was; what a token, Tempo's guard or a partner took and did not deliver has left the wallet, and stays counted. */
export function isBack({ status, reason }: Pick<TransferRow, 'status' | 'reason'>): boolean {
  return status === 'failed' && reason !== 'not-received'
}

/** A bridge that took the money is always told of: whoever asked was told at most that it is under way. */
function isToBeTold(transfer: TransferRow): boolean {
  if (transfer.route === 'partner-bridge' && transfer.leftAt !== null) return true
  return transfer.answered !== null && !isAsTold(transfer)
}

/** A block that was told of may be undone, and the next one say something else. */
function isAsTold({ answered, status }: TransferRow): boolean {
  return answered === (status === 'confirmed' ? 'confirmed' : 'reverted')
}

/** Publishes the outcome of a transfer, once. The caller has locked its row. */
export async function tell(ctx: EndingCtx, tx: Tx, transfer: TransferRow): Promise<void> {
  const { endedAt } = transfer
  if (transfer.eventId !== null || endedAt === null) return
  const own = { ...ctx, tenant: transfer }
  const eventId =
    transfer.status === 'confirmed'
      ? await publishEvent(own, tx, 'transfer.completed', completed(transfer, endedAt))
      : await publishEvent(own, tx, 'transfer.failed', failed(transfer))
  await markTold(tx, transfer.id, eventId)
}

function completed(transfer: TransferRow, endedAt: Date) {
  if (transfer.txHash === null) throw new Error('a confirmed transfer has a transaction')

  return {
    transactionId: transfer.id,
    walletId: transfer.walletId,
    route: transfer.route,
    fromChain: transfer.fromChain,
    toChain: transfer.toChain,
    amount: formatAmount(transfer.rawAmount, transfer.decimals),
    fromToken: transfer.fromToken,
    toToken: transfer.toToken,
    ...arrivedOf(transfer),
    txHash: transfer.txHash,
    confirmedAt: (transfer.confirmedAt ?? endedAt).toISOString(),
  }
}

function failed(transfer: TransferRow) {
  const { id: transactionId, walletId, route, reason, refundTxHash, refundedAt } = transfer
  if (reason === null) throw new Error('a failed transfer has a reason')
  return { transactionId, walletId, route, reason, refundTxHash, refundedAt: refundedAt?.toISOString() ?? null }
}

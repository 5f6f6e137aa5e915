import { formatAmount } from '@purser/protocol'
import type { Ctx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { publishEvents } from '../../platform/events.ts'
import { forTenant } from '../../platform/work/runner.ts'
import { markEnded, markSettled, type SettlementRow } from './settlement-store.ts'

type System = Omit<Ctx, 'tenant'>

/** Records that these payments are on chain for good: rows, events and one audit record per tenant, in the caller's transaction. */
export async function recordSettled(
  ctx: System,
  tx: Tx,
  payments: readonly SettlementRow[],
  txHash: string,
): Promise<void> {
  const settledAt = ctx.clock.now()
  const moved = await markSettled(
    tx,
    payments.map((payment) => payment.id),
    txHash,
    settledAt,
  )
  const byTenant = Map.groupBy(
    payments.filter((payment) => moved.has(payment.id)),
    tenantKey,
  )
  for (const group of byTenant.values()) {
    const own = tenantCtx(ctx, group)
    await publishEvents(
      own,
      tx,
      'payment.settled',
      group.map((payment) => ({ ...outcomePayload(payment), txHash, settledAt: settledAt.toISOString() })),
    )
    await own.audit(tx, {
      action: 'payments.settled',
      target: txHash,
      details: { payments: group.map((payment) => payment.id) },
    })
  }
}

/** Records that a payment ended without money moving. */
export async function recordEnded(
  ctx: System,
  tx: Tx,
  payment: SettlementRow,
  status: 'settlement_failed' | 'voided',
  reason: string,
): Promise<void> {
  if ((await markEnded(tx, payment.id, status, reason)) === 0) return
  const own = tenantCtx(ctx, [payment])
  if (status === 'settlement_failed') {
    await own.publish(tx, 'payment.settlement_failed', {
      ...outcomePayload(payment),
      reason,
      failedAt: ctx.clock.now().toISOString(),
    })
  }
  await own.audit(tx, { action: `payments.${status}`, target: payment.id, details: { reason } })
}

function outcomePayload(payment: SettlementRow): Record<string, unknown> {
  return {
    paymentId: payment.id,
    walletId: payment.walletId,
    amount: formatAmount(payment.rawAmount, payment.decimals),
    token: payment.token,
    chain: payment.chain,
    payer: payment.payer,
  }
}

function tenantKey(payment: SettlementRow): string {
  return `${payment.organisationId}/${payment.environment}`
}

function tenantCtx(ctx: System, group: readonly SettlementRow[]): Ctx {
  const first = group[0]
  if (first === undefined) throw new Error('an empty group has no tenant')
  return forTenant(ctx, { organisationId: first.organisationId, environment: first.environment })
}

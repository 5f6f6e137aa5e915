import { formatAmount } from '@purser/protocol'
import type { Ctx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { inLockOrder } from '../../platform/db/lock-order.ts'
import { publishEvents } from '../../platform/events.ts'
import { forTenant } from '../../platform/work/runner.ts'
import { markEnded, markSettled, type SettlementRow } from './settlement-store.ts'

type System = Omit<Ctx, 'tenant'>

/** What telling of an outcome needs of a payment, whatever brought it to the chain. */
export type EndingPayment = Pick<
  SettlementRow,
  'id' | 'organisationId' | 'environment' | 'walletId' | 'rawAmount' | 'decimals' | 'token' | 'chain' | 'payer'
>

/**
 * Records that these payments are on chain for good, or with null that they owed nothing: rows, events and one audit record per tenant, in the
 * caller's transaction.
 */
export async function recordSettled(
  ctx: System,
  tx: Tx,
  payments: readonly EndingPayment[],
  txHash: string | null,
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
  // Each record locks its organisation's log, and two networks may settle for the same organisations at once.
  for (const [, group] of inLockOrder(byTenant)) {
    const own = tenantCtx(ctx, group)
    await publishEvents(
      own,
      tx,
      'payment.settled',
      group.map((payment) => ({ ...outcomePayload(payment), txHash, settledAt: settledAt.toISOString() })),
    )
    await own.audit(tx, {
      action: 'payments.settled',
      target: txHash ?? group.map((payment) => payment.id).join(' '),
      details: { payments: group.map((payment) => payment.id) },
    })
  }
}

/** Records that a payment ended without money moving. */
export async function recordEnded(
  ctx: System,
  tx: Tx,
  payment: EndingPayment,
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

function outcomePayload(payment: EndingPayment): Record<string, unknown> {
  return {
    paymentId: payment.id,
    walletId: payment.walletId,
    amount: formatAmount(payment.rawAmount, payment.decimals),
    token: payment.token,
    chain: payment.chain,
    payer: payment.payer,
  }
}

function tenantKey(payment: EndingPayment): string {
  return `${payment.organisationId}/${payment.environment}`
}

function tenantCtx(ctx: System, group: readonly EndingPayment[]): Ctx {
  const first = group[0]
  if (first === undefined) throw new Error('an empty group has no tenant')
  return forTenant(ctx, { organisationId: first.organisationId, environment: first.environment })
}

import { formatAmount } from '@purser/protocol'
import type { Ctx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { inLockOrder } from '../../platform/db/lock-order.ts'
import { publishEvents } from '../../platform/events.ts'
import { forTenant } from '../../platform/work/runner.ts'
import { countEnded } from './give-back.ts'
import { type EndedRow, type Ending, markEnded, markSettled } from './outcome-store.ts'
import type { EndingPayment } from './settlement-store.ts'

type System = Omit<Ctx, 'tenant'>

/** A payment that is on chain for good, by this transaction; null where it owed nothing. */
export interface Settled {
  readonly payment: EndingPayment
  readonly txHash: string | null
}

/**
 * Records that these payments are on chain for good: rows, counts, events and one audit record per tenant, in the caller's
 * transaction. A payment that was voided becomes settled when the chain shows that it has paid after all.
 * Answers the ids of those that were not settled before.
 */
export async function recordSettled(ctx: System, tx: Tx, settled: readonly Settled[]): Promise<ReadonlySet<string>> {
  const settledAt = ctx.clock.now()
  const moved = await markSettled(
    tx,
    settled.map(({ payment: { id }, txHash }) => ({ id, txHash })),
    settledAt,
  )
  await countEnded(tx, moved)
  const hashes = new Map<string, string | null>(settled.map(({ payment, txHash }) => [payment.id, txHash]))
  const byTenant = byTenantOf(
    settled.map(({ payment }) => payment),
    moved,
  )
  // Each record locks its organisation's log, and two networks may settle for the same organisations at once.
  for (const [, group] of inLockOrder(byTenant)) {
    const own = tenantCtx(ctx, group)
    await publishEvents(
      own,
      tx,
      'payment.settled',
      group.map((payment) => {
        const txHash = hashes.get(payment.id) ?? null
        return { ...outcomePayload(payment), txHash, settledAt: settledAt.toISOString() }
      }),
    )
    await own.audit(tx, {
      action: 'payments.settled',
      target: [...new Set(group.map((payment) => hashes.get(payment.id) ?? payment.id))].join(' '),
      details: { payments: group.map((payment) => payment.id) },
    })
  }
  return new Set(moved.map(({ id }) => id))
}

/**
 * Records that these payments ended without money moving: rows, events, audit records, and their counts and gas given back, in the
 * caller's transaction. Those that have ended before are left as they are. Answers the ids of the others.
 */
export async function recordEnded(
  ctx: System,
  tx: Tx,
  payments: readonly EndingPayment[],
  ending: Ending,
): Promise<ReadonlySet<string>> {
  const moved = await markEnded(
    tx,
    payments.map((payment) => payment.id),
    ending,
  )
  await countEnded(tx, moved)
  for (const [, group] of inLockOrder(byTenantOf(payments, moved)))
    await announceEnded(tenantCtx(ctx, group), tx, group, ending)
  return new Set(moved.map(({ id }) => id))
}

async function announceEnded(
  ctx: Ctx,
  tx: Tx,
  group: readonly EndingPayment[],
  { status, reason }: Ending,
): Promise<void> {
  if (status === 'settlement_failed') {
    const failedAt = ctx.clock.now().toISOString()
    await publishEvents(
      ctx,
      tx,
      'payment.settlement_failed',
      group.map((payment) => ({ ...outcomePayload(payment), reason, failedAt })),
    )
  }
  for (const { id } of group) await ctx.audit(tx, { action: `payments.${status}`, target: id, details: { reason } })
}

/** Of these payments those that moved, by tenant. */
function byTenantOf(payments: readonly EndingPayment[], moved: readonly EndedRow[]): Map<string, EndingPayment[]> {
  const ids = new Set<string>(moved.map(({ id }) => id))
  return Map.groupBy(
    payments.filter(({ id }) => ids.has(id)),
    tenantKey,
  )
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

import { formatAmount } from '@purser/protocol'
import { appendAudit } from '../../platform/audit.ts'
import type { Tx } from '../../platform/db/db.ts'
import { inLockOrder } from '../../platform/db/lock-order.ts'
import { publishEvents } from '../../platform/events.ts'
import { forTenant } from '../../platform/work/runner.ts'
import { changeGasLast } from '../plans/index.ts'
import { countEnded, gasChange } from './give-back.ts'
import { type EndedRow, type Failed, markEnded, markSettled, type Settled } from './outcome-store.ts'
import type { Ctx } from './ports.ts'

type System = Omit<Ctx, 'tenant'>

/**
 * Records that payments are final on chain: rows, counts and events, in the caller's transaction. A payment that was voided becomes
 * settled when the chain shows that it has paid after all. Released and used gas, and one audit record per tenant, are written when
 * the transaction commits. Returns the ids of those that were not settled before.
 */
export async function recordSettled(ctx: System, tx: Tx, settled: readonly Settled[]): Promise<ReadonlySet<string>> {
  const settledAt = ctx.clock.now()
  const rows = await markSettled(tx, settled, settledAt)
  await countEnded(tx, rows)
  const used = new Map<string, bigint>(settled.map(({ id, gasNanoUsd }) => [id, gasNanoUsd]))
  for (const [tenant, own] of byTenant(rows)) {
    const payloads = own.map((row) => ({
      ...outcomePayload(row),
      txHash: row.txHash,
      settledAt: settledAt.toISOString(),
    }))
    const acting = forTenant(ctx, tenant)
    await publishEvents(acting, tx, 'payment.settled', payloads)
    const target = [...new Set(own.map(({ id, txHash }) => txHash ?? id))].join(' ')
    const details = { payments: own.map(({ id }) => id) }
    appendAudit(acting, tx, { action: 'payments.settled', target, details })
  }
  tx.afterCommit(() => {
    for (const { network, createdAt } of rows) {
      ctx.metrics.payments.inc({ network, outcome: 'settled' })
      ctx.metrics.settleSeconds.observe({ network }, Math.max(0, settledAt.getTime() - createdAt.getTime()) / 1_000)
    }
  })
  changeGasLast(
    tx,
    rows.map((row) => gasChange(row, (used.get(row.id) ?? 0n) - row.gasReservedNanoUsd)),
  )
  return new Set(rows.map(({ id }) => id))
}

/**
 * Records that payments ended without money moving: rows, counts and events, in the caller's transaction. Released gas and
 * audit records are written when it commits. Returns the ids of those that had not ended before.
 */
export async function recordFailed(
  ctx: System,
  tx: Tx,
  failed: readonly Failed[],
  from?: 'verified' | 'settling',
): Promise<ReadonlySet<string>> {
  const rows = await markEnded(tx, failed, from)
  await countEnded(tx, rows)
  const failedAt = ctx.clock.now().toISOString()
  for (const [tenant, own] of byTenant(rows.filter(({ status }) => status === 'settlement_failed')))
    await publishEvents(
      forTenant(ctx, tenant),
      tx,
      'payment.settlement_failed',
      own.map((row) => ({ ...outcomePayload(row), reason: reasonOf(row), failedAt })),
    )
  for (const [tenant, own] of byTenant(rows))
    for (const { id: target, status, failureReason: reason } of own)
      appendAudit(forTenant(ctx, tenant), tx, { action: `payments.${status}`, target, details: { reason } })
  tx.afterCommit(() => {
    for (const { network, status } of rows) ctx.metrics.payments.inc({ network, outcome: status })
  })
  changeGasLast(
    tx,
    rows.map((row) => gasChange(row, -row.gasReservedNanoUsd)),
  )
  return new Set(rows.map(({ id }) => id))
}

type Owned = Pick<EndedRow, 'organisationId' | 'environment'>

function byTenant<T extends Owned>(rows: readonly T[]): [Owned, readonly T[]][] {
  const groups = Map.groupBy(rows, ({ organisationId, environment }) => `${organisationId}/${environment}`)
  return inLockOrder<readonly T[]>(groups).flatMap(([, own]) => {
    const [first] = own
    return first === undefined
      ? []
      : [[{ organisationId: first.organisationId, environment: first.environment }, own] as [Owned, readonly T[]]]
  })
}

function outcomePayload(payment: EndedRow) {
  return {
    paymentId: payment.id,
    walletId: payment.walletId,
    amount: formatAmount(payment.rawAmount, payment.decimals),
    token: payment.token,
    chain: payment.chain,
    payer: payment.payer,
  }
}

function reasonOf({ failureReason }: EndedRow): string {
  if (failureReason === null) throw new Error('a payment that failed has a reason')
  return failureReason
}

import { formatAmount } from '@purser/protocol'
import type { Ctx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { inLockOrder } from '../../platform/db/lock-order.ts'
import { publishEvents } from '../../platform/events.ts'
import { forTenant } from '../../platform/work/runner.ts'
import { type Closing, close, type TenantAudit } from '../relayer/index.ts'
import { countEnded, gasChange } from './give-back.ts'
import { type EndedRow, type Failed, markEnded, markSettled, type Settled } from './outcome-store.ts'

type System = Omit<Ctx, 'tenant'>

/** Payments that a transaction has ended, and what it closes with. */
export interface Ended {
  readonly rows: readonly EndedRow[]
  readonly closing: Closing
}

/**
 * Records that payments are on chain for good: rows, counts and events, in the caller's transaction. A payment that was voided becomes
 * settled when the chain shows that it has paid after all. Returns those that were not settled before, and what the caller closes with: what they
 * give back and used of gas, and one audit record per tenant.
 */
export async function endSettled(ctx: System, tx: Tx, settled: readonly Settled[]): Promise<Ended> {
  const settledAt = ctx.clock.now()
  const rows = await markSettled(tx, settled, settledAt)
  await countEnded(tx, rows)
  const used = new Map<string, bigint>(settled.map(({ id, gasNanoUsd }) => [id, gasNanoUsd]))
  const audits: TenantAudit[] = []
  for (const [tenant, own] of byTenant(rows)) {
    const payloads = own.map((row) => ({
      ...outcomePayload(row),
      txHash: row.txHash,
      settledAt: settledAt.toISOString(),
    }))
    await publishEvents(forTenant(ctx, tenant), tx, 'payment.settled', payloads)
    const target = [...new Set(own.map(({ id, txHash }) => txHash ?? id))].join(' ')
    const details = { payments: own.map(({ id }) => id) }
    audits.push({ tenant, entry: { action: 'payments.settled', target, details } })
  }
  return {
    rows,
    closing: { gas: rows.map((row) => gasChange(row, (used.get(row.id) ?? 0n) - row.gasReservedNanoUsd)), audits },
  }
}

/**
 * Records that payments ended without money moving: rows, counts and events, in the caller's transaction. Returns those that had not ended
 * before, and what the caller closes with: what they give back of gas, and their audit records.
 */
export async function endFailed(
  ctx: System,
  tx: Tx,
  failed: readonly Failed[],
  from?: 'verified' | 'settling',
): Promise<Ended> {
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
  const audits = byTenant(rows).flatMap(([tenant, own]) =>
    own.map(({ id: target, status, failureReason: reason }) => {
      return { tenant, entry: { action: `payments.${status}`, target, details: { reason } } }
    }),
  )
  return { rows, closing: { gas: rows.map((row) => gasChange(row, -row.gasReservedNanoUsd)), audits } }
}

/** `endSettled` for a transaction that ends nothing else. Returns the ids of those that were not settled before. */
export async function recordSettled(ctx: System, tx: Tx, settled: readonly Settled[]): Promise<ReadonlySet<string>> {
  return closed(ctx, tx, await endSettled(ctx, tx, settled))
}

/** `endFailed` for a transaction that ends nothing else. Returns the ids of those that had not ended before. */
export async function recordFailed(
  ctx: System,
  tx: Tx,
  failed: readonly Failed[],
  from?: 'verified' | 'settling',
): Promise<ReadonlySet<string>> {
  return closed(ctx, tx, await endFailed(ctx, tx, failed, from))
}

async function closed(ctx: System, tx: Tx, { rows, closing }: Ended): Promise<ReadonlySet<string>> {
  await close(ctx, tx, [closing])
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

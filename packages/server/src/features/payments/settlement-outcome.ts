import { requireNetwork } from '@purser/protocol'
import { appendAudit } from '../../platform/audit.ts'
import { utcMonthOf } from '../../platform/clock.ts'
import type { ActingCtx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { inLockOrder } from '../../platform/db/lock-order.ts'
import { publishEvents } from '../../platform/events.ts'
import { id, type PaymentId } from '../../platform/ids.ts'
import { forTenant, systemCtx } from '../../platform/work/runner.ts'
import { changeCounters, changeGasLast, dayOf, type GasChange } from '../plans/index.ts'
import type { Admission, FailedRelay, Relay, RelayPurpose, SettledRelay } from '../relayer/index.ts'
import { sanctionedReason } from './credential.ts'
import { markUncounted, type UncountedPayment } from './monthly-count-store.ts'
import { paymentPayload } from './new-payment.ts'
import type { Ctx, Deps } from './ports.ts'
import {
  addGasUsed,
  type EndedRow,
  type Failed,
  forgetHashes,
  lockPayments,
  markHashes,
  markPaymentsEnded,
  markSettled,
  type Settled,
  type UsedRow,
} from './settlement-store.ts'

type System = Omit<Ctx, 'tenant'>

/**
 * Records that payments are final on chain: rows, counts and events, in the caller's transaction. A payment that was voided becomes
 * settled when the chain shows that it has paid after all. Released and used gas, and one audit record per tenant, are written when
 * the transaction commits. Returns the ids of those that were not settled before.
 */
export async function recordSettled(
  ctx: ActingCtx & Pick<System, 'metrics'>,
  tx: Tx,
  settled: readonly Settled[],
): Promise<ReadonlySet<string>> {
  const settledAt = ctx.clock.now()
  const rows = await markSettled(tx, settled, settledAt)
  await countEnded(tx, rows)
  const used = new Map<string, bigint>(settled.map(({ id, gasNanoUsd }) => [id, gasNanoUsd]))
  for (const [tenant, own] of byTenant(rows)) {
    const payloads = own.map((row) => ({
      ...paymentPayload(row),
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
  ctx: ActingCtx & Pick<System, 'metrics'>,
  tx: Tx,
  failed: readonly Failed[],
  from?: 'verified' | 'settling',
): Promise<ReadonlySet<string>> {
  const rows = await markPaymentsEnded(tx, failed, from)
  await countEnded(tx, rows)
  const failedAt = ctx.clock.now().toISOString()
  for (const [tenant, own] of byTenant(rows.filter(({ status }) => status === 'settlement_failed')))
    await publishEvents(
      forTenant(ctx, tenant),
      tx,
      'payment.settlement_failed',
      own.map((row) => ({ ...paymentPayload(row), reason: reasonOf(row), failedAt })),
    )
  // A payment that was voided before anything was sent moved nothing: its row says all.
  const sent = rows.filter(({ status, previousStatus }) => status !== 'voided' || previousStatus !== 'verified')
  for (const [tenant, own] of byTenant(sent))
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

/**
 * Removes payments from the month's count, and releases their gas, if nodes refused their transactions or no block includes them. One with a reason is not sent again. The
 * chain is read until the transaction's end; if a block includes it nevertheless, it is settled and counted.
 */
export async function recordUncounted(tx: Tx, given: readonly UncountedPayment[]): Promise<void> {
  const rows = await markUncounted(tx, given)
  const changes = rows.map((row) => ({
    tenant: tenantOf(row),
    period: utcMonthOf(row.createdAt),
    n: row.hadPlace ? -1 : 0,
  }))
  await changeCounters(
    tx,
    changes.map((change) => ({ ...change, kind: 'payments' })),
  )
  changeGasLast(
    tx,
    rows.map((freed) => gasChange(freed, -freed.gasReservedNanoUsd)),
  )
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

function reasonOf({ failureReason }: EndedRow): string {
  if (failureReason === null) throw new Error('a payment that failed has a reason')
  return failureReason
}

/** Name of payments in the relayer. */
export const paymentPurpose = 'payments'

/** Returns the callbacks for payments that the relayer sends. */
export function paymentRelays(
  deps: Pick<Deps, 'clock' | 'eventsCommitted' | 'gasPrices' | 'metrics' | 'random' | 'screening'>,
): RelayPurpose {
  const ctx = systemCtx(deps)
  return {
    purpose: paymentPurpose,
    share: 1,
    refusal: 'fail',
    lock: lockPayments,
    // Hours may lie between the request and the first node that answers.
    admit: async (_, relays) => relays.map((relay) => admissionOf(ctx, relay)),
    onSent: (tx, carried) =>
      markHashes(
        tx,
        carried.map(({ relay, hash }) => ({ paymentId: relay.subjectId, hash })),
      ),
    // Clears only the hash of a transaction that a block showed without the money: a block that was reorganized away
    // may come back with the money.
    onLeft: (tx, relays) =>
      forgetHashes(
        tx,
        relays.map(({ subjectId }) => subjectId),
      ),
    onSettled: (tx, settled) => settleAll(ctx, tx, settled),
    onFailed: (tx, failed) => endAll(ctx, tx, failed),
    onSpent: async (tx, spent) => {
      const charged = spent.map(({ relay, wei }) => {
        return { paymentId: paymentIdOf(relay), nanoUsd: worthOf(ctx, relay, wei) }
      })
      changeGasLast(tx, await chargeGas(tx, charged))
    },
  }
}

/** Whether a payment is sent now: it fails if its payer or receiver is sanctioned. It reads only memory. */
function admissionOf({ screening }: Pick<Ctx, 'screening'>, relay: Relay): Admission {
  const { signer: payer, payload, organisationId, environment } = relay
  const payTo = payload.kind === 'permit2' ? payload.witness.to : payload.to
  const reason = sanctionedReason({ screening, tenant: { organisationId, environment } }, { payer, payTo })
  return reason === undefined ? 'send' : { kind: 'refused', reason }
}

async function settleAll(
  ctx: ActingCtx & Pick<System, 'gasPrices' | 'metrics'>,
  tx: Tx,
  settled: readonly SettledRelay[],
): Promise<void> {
  const payments = settled.map(({ relay, transactionHash: txHash, wei }) => {
    return { id: paymentIdOf(relay), txHash, gasNanoUsd: worthOf(ctx, relay, wei) }
  })
  await recordSettled(ctx, tx, payments)
}

/** Ends relays without money: one that expired before it was sent is voided, every other has failed. */
async function endAll(ctx: ActingCtx & Pick<System, 'metrics'>, tx: Tx, failed: readonly FailedRelay[]): Promise<void> {
  const payments = failed.map(({ relay, fault: { kind, reason } }) => {
    return { id: paymentIdOf(relay), status: kind === 'expired' ? 'voided' : 'settlement_failed', reason } as const
  })
  await recordFailed(ctx, tx, payments)
}

function paymentIdOf({ subjectId }: Relay): PaymentId {
  return id('pay').parse(subjectId)
}

function worthOf({ gasPrices }: Pick<Ctx, 'gasPrices'>, { network }: Relay, wei: bigint): bigint {
  return gasPrices.worthOf(requireNetwork(network), wei)
}

/**
 * Updates the month's count for payments that the caller's transaction has just ended: one that ended without money is
 * subtracted unless its place was freed before, and one that had no place and has settled after all is added again. It happens exactly once, because a row is among
 * `ended` only in the transaction that changed its status.
 */
function countEnded(tx: Tx, ended: readonly EndedRow[]): Promise<void> {
  return changeCounters(
    tx,
    ended.map((row) => ({
      tenant: tenantOf(row),
      kind: 'payments',
      period: utcMonthOf(row.createdAt),
      n: changeOf(row),
    })),
  )
}

function changeOf({ status, wasCounted }: EndedRow): number {
  if (status !== 'settled') return wasCounted ? -1 : 0
  return wasCounted ? 0 : 1
}

/** Gas that an attempt to settle a payment used, in billionths of a US dollar. */
export interface UsedGas {
  readonly paymentId: PaymentId
  readonly nanoUsd: bigint
}

/**
 * Charges payments with the gas that one attempt to settle them used, whatever its outcome; returns the changes of their budgets.
 * The caller's transaction must be the one that marks the attempt as finished, so that it is charged once.
 */
export async function chargeGas(tx: Tx, attempts: readonly UsedGas[]): Promise<readonly GasChange[]> {
  const used = attempts.filter(({ nanoUsd }) => nanoUsd > 0n)
  if (used.length === 0) return []
  return (await addGasUsed(tx, used)).map((row) => gasChange(row, row.nanoUsd))
}

/** Returns a change of the budget of the day on which the payment was verified; its reservation is in the same budget. */
function gasChange(row: UsedRow, nanoUsd: bigint): GasChange {
  return { tenant: tenantOf(row), network: row.network, day: dayOf(row.createdAt), nanoUsd }
}

function tenantOf({ organisationId, environment }: UsedRow) {
  return { organisationId, environment }
}

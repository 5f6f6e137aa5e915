import type { Ctx, Deps } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { id } from '../../platform/ids.ts'
import { systemCtx } from '../../platform/work/runner.ts'
import type { FailedRelay, RelayPurpose, SettledRelay, SpentOnRelay } from '../relayer/index.ts'
import { chargeGas } from './give-back.ts'
import { recordEnded, recordSettled } from './settlement-outcome.ts'
import { forgetHashes, listEnding, lockPayments, markHashes } from './settlement-store.ts'

/** Name under which the relayer knows payments. */
export const paymentPurpose = 'payments'

/** What becomes of payments that the relayer sends. */
export function paymentRelays(deps: Deps): RelayPurpose {
  const ctx = systemCtx(deps)
  return {
    purpose: paymentPurpose,
    share: 1,
    refusal: 'fail',
    lock: lockPayments,
    onSent: (tx, carried) =>
      markHashes(
        tx,
        carried.map(({ relay, hash }) => ({ paymentId: relay.subjectId, hash })),
      ),
    // Only what a block showed without the money: a block that is gone may come back with it.
    onLeft: (tx, relays) =>
      forgetHashes(
        tx,
        relays.map(({ subjectId }) => subjectId),
      ),
    onSettled: (tx, settled) => settleAll(ctx, tx, settled),
    onFailed: (tx, failed) => endAll(ctx, tx, failed),
    onSpent: (tx, spent) => chargeAll(ctx, tx, spent),
  }
}

type System = Omit<Ctx, 'tenant'>

async function settleAll(ctx: System, tx: Tx, settled: readonly SettledRelay[]): Promise<void> {
  const hashes = new Map(settled.map(({ relay, transactionHash }) => [relay.subjectId, transactionHash]))
  const payments = await listEnding(tx, [...hashes.keys()])
  await recordSettled(
    ctx,
    tx,
    payments.map((payment) => ({ payment, txHash: hashes.get(payment.id) ?? null })),
  )
}

/** Whatever became of it, an attempt counts with what it really cost. */
async function chargeAll(ctx: System, tx: Tx, spent: readonly SpentOnRelay[]): Promise<void> {
  for (const [network, own] of Map.groupBy(spent, ({ relay }) => relay.network)) {
    const attempts = own.map(({ relay, wei }) => ({ paymentId: id('pay').parse(relay.subjectId), weiUsed: wei }))
    await chargeGas(ctx, tx, network, attempts)
  }
}

/** What expired before anybody sent it is voided; everything else that ended has failed. */
async function endAll(ctx: System, tx: Tx, failed: readonly FailedRelay[]): Promise<void> {
  const groups = Map.groupBy(failed, ({ fault: { kind, reason } }) => `${kind === 'expired'} ${reason}`)
  for (const group of groups.values()) {
    const fault = group[0]?.fault
    if (fault === undefined) continue
    const payments = await listEnding(
      tx,
      group.map(({ relay }) => relay.subjectId),
    )
    const status = fault.kind === 'expired' ? 'voided' : 'settlement_failed'
    await recordEnded(ctx, tx, payments, { status, reason: fault.reason })
  }
}

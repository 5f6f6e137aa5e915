import type { Tx } from '../../platform/db/db.ts'
import { id, type PaymentId } from '../../platform/ids.ts'
import { systemCtx } from '../../platform/work/runner.ts'
import { changeGasLast } from '../plans/index.ts'
import type { FailedRelay, Relay, RelayPurpose, SettledRelay } from '../relayer/index.ts'
import { chargeGas, networkOf } from './give-back.ts'
import type { Ctx, Deps } from './ports.ts'
import { recordFailed, recordSettled } from './settlement-outcome.ts'
import { forgetHashes, lockPayments, markHashes } from './settlement-store.ts'

/** Name of payments in the relayer. */
export const paymentPurpose = 'payments'

/** Returns the callbacks for payments that the relayer sends. */
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

type System = Omit<Ctx, 'tenant'>

async function settleAll(ctx: System, tx: Tx, settled: readonly SettledRelay[]): Promise<void> {
  const payments = settled.map(({ relay, transactionHash: txHash, wei }) => {
    return { id: paymentIdOf(relay), txHash, gasNanoUsd: worthOf(ctx, relay, wei) }
  })
  await recordSettled(ctx, tx, payments)
}

/** Ends relays without money: one that expired before it was sent is voided, every other has failed. */
async function endAll(ctx: System, tx: Tx, failed: readonly FailedRelay[]): Promise<void> {
  const payments = failed.map(({ relay, fault: { kind, reason } }) => {
    return { id: paymentIdOf(relay), status: kind === 'expired' ? 'voided' : 'settlement_failed', reason } as const
  })
  await recordFailed(ctx, tx, payments)
}

function paymentIdOf({ subjectId }: Relay): PaymentId {
  return id('pay').parse(subjectId)
}

function worthOf({ gasPrices }: Pick<Ctx, 'gasPrices'>, { network }: Relay, wei: bigint): bigint {
  return gasPrices.worthOf(networkOf(network), wei)
}

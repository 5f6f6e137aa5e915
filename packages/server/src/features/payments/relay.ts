import type { Ctx, Deps } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { id, type PaymentId } from '../../platform/ids.ts'
import { systemCtx } from '../../platform/work/runner.ts'
import type { Closing, FailedRelay, Relay, RelayPurpose, SettledRelay } from '../relayer/index.ts'
import { chargeGas, networkOf } from './give-back.ts'
import { endFailed, endSettled } from './settlement-outcome.ts'
import { forgetHashes, lockPayments, markHashes } from './settlement-store.ts'

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
    onSpent: async (tx, spent) => {
      const gas = await chargeGas(
        tx,
        spent.map(({ relay, wei }) => ({ paymentId: paymentIdOf(relay), nanoUsd: worthOf(ctx, relay, wei) })),
      )
      return { gas, audits: [] }
    },
  }
}

type System = Omit<Ctx, 'tenant'>

async function settleAll(ctx: System, tx: Tx, settled: readonly SettledRelay[]): Promise<Closing> {
  const payments = settled.map(({ relay, transactionHash: txHash, wei }) => {
    return { id: paymentIdOf(relay), txHash, gasNanoUsd: worthOf(ctx, relay, wei) }
  })
  return (await endSettled(ctx, tx, payments)).closing
}

/** What expired before anybody sent it is voided; everything else that ended has failed. */
async function endAll(ctx: System, tx: Tx, failed: readonly FailedRelay[]): Promise<Closing> {
  const payments = failed.map(({ relay, fault: { kind, reason } }) => {
    return { id: paymentIdOf(relay), status: kind === 'expired' ? 'voided' : 'settlement_failed', reason } as const
  })
  return (await endFailed(ctx, tx, payments)).closing
}

function paymentIdOf({ subjectId }: Relay): PaymentId {
  return id('pay').parse(subjectId)
}

function worthOf({ gasPrices }: Pick<Ctx, 'gasPrices'>, { network }: Relay, wei: bigint): bigint {
  return gasPrices.worthOf(networkOf(network), wei)
}

import { systemCtx } from '../../../platform/work/runner.ts'
import type { RelayPurpose } from '../../relayer/index.ts'
import { endAll } from '../ending.ts'
import { reasonOf, settleRelays, transferIdOf, transferOf } from '../gasless/relay.ts'
import type { Deps } from '../ports.ts'
import { lockTransfers } from '../store.ts'
import { paymentPurpose } from './store.ts'

/**
 * Relay purpose of payments of a 402, which their payees send and which are only watched here: the chain decides whether the money moved, or
 * can never move.
 */
export function watchedPayments(deps: Deps): RelayPurpose {
  const ctx = systemCtx(deps)
  return {
    purpose: paymentPurpose,
    share: 0,
    refusal: 'wait',
    expiry: 'final',
    lock: async (tx, subjectIds) => void (await lockTransfers(tx, subjectIds.map(transferIdOf))),
    onSettled: (tx, settled) => settleRelays(ctx, tx, settled),
    onFailed: (tx, failed) =>
      endAll(
        ctx,
        tx,
        failed.map(({ relay, fault }) => ({ transferId: transferOf(relay), fault: reasonOf(fault) })),
      ),
    onSpent: async () => {},
  }
}

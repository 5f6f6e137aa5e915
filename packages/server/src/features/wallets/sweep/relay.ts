import type { Ctx, Deps } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { systemCtx } from '../../../platform/work/runner.ts'
import type { Admission, FailedRelay, Relay, RelayFault, RelayPurpose, SettledRelay } from '../../relayer/index.ts'
import { chargeBudgets } from '../gasless.ts'
import { frozenOnes } from './frozen.ts'
import { networkOf, recordEnded } from './outcome.ts'
import { keyOf, listToAdmit, listTransfers, lockSweeps, markLeft, markSent } from './relay-store.ts'

type System = Omit<Ctx, 'tenant'>

/** Name under which the relayer knows transfers of sweeps. */
export const sweepPurpose = 'wallets.sweeps'

const frozenFault: RelayFault = { kind: 'refused', reason: 'amount-frozen' }

/** What becomes of transfers of sweeps that the relayer sends. Payments come first: sweeps leave half of the lane free. */
export function sweepRelays(deps: Deps): RelayPurpose {
  const ctx = systemCtx(deps)
  return {
    purpose: sweepPurpose,
    share: 0.5,
    refusal: 'fail',
    lock: (tx, subjectIds) => lockSweeps(tx, [...new Set(subjectIds.map((subjectId) => keyOf(subjectId).sweepId))]),
    admit,
    onSent: (tx, carried) =>
      markSent(
        tx,
        carried.map(({ relay, hash }) => ({ ...keyOf(relay.subjectId), hash })),
      ),
    onLeft: (tx, relays) => markLeft(tx, keysOfRelays(relays)),
    onSettled: (tx, settled) => settleAll(ctx, tx, settled),
    onFailed: (tx, failed) => failAll(ctx, tx, failed),
    async onSpent(tx, spent) {
      for (const [network, own] of Map.groupBy(spent, ({ relay }) => relay.network))
        await chargeBudgets(
          ctx,
          tx,
          networkOf(network),
          own.map(({ relay, wei }) => ({ move: relay, wei })),
        )
    },
  }
}

/** Money of senders that are not screened yet waits, and of what was frozen since the sweep was stored nothing is sent. */
async function admit(tx: Tx, relays: readonly Relay[]): Promise<readonly Admission[]> {
  const rows = await listToAdmit(tx, keysOfRelays(relays))
  const frozen = await frozenOnes(tx, rows)
  const byKey = new Map(rows.map((row) => [`${row.sweepId} ${row.childAddressId}`, row]))
  return relays.map(({ subjectId }) => {
    const row = byKey.get(subjectId)
    if (row === undefined || !row.isScreened) return 'wait'
    return frozen.has(row) ? frozenFault : 'send'
  })
}

async function settleAll(ctx: System, tx: Tx, settled: readonly SettledRelay[]): Promise<void> {
  for (const [txHash, own] of Map.groupBy(settled, ({ transactionHash }) => transactionHash)) {
    const transfers = await listTransfers(tx, keysOfRelays(own.map(({ relay }) => relay)))
    await recordEnded(ctx, tx, transfers, { status: 'swept', txHash })
  }
}

async function failAll(ctx: System, tx: Tx, failed: readonly FailedRelay[]): Promise<void> {
  for (const [reason, own] of Map.groupBy(failed, ({ fault }) => reasonOf(fault))) {
    const transfers = await listTransfers(tx, keysOfRelays(own.map(({ relay }) => relay)))
    await recordEnded(ctx, tx, transfers, { status: 'failed', reason })
  }
}

/** The sweep's own word for why a relay ended. */
function reasonOf(fault: RelayFault): string {
  const words = {
    expired: 'authorization-expired',
    canceled: 'authorization-cancelled',
    'nonce-used': 'not-received',
    'insufficient-balance': 'insufficient-balance',
    refused: fault.reason === frozenFault.reason ? frozenFault.reason : 'transfer-refused',
    'not-carried': 'transfer-failed',
  } as const
  return words[fault.kind]
}

function keysOfRelays(relays: readonly Relay[]) {
  return relays.map(({ subjectId }) => keyOf(subjectId))
}

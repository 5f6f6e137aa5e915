import type { Ctx, Deps } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { systemCtx } from '../../../platform/work/runner.ts'
import type {
  Admission,
  Closing,
  FailedRelay,
  Relay,
  RelayFault,
  RelayPurpose,
  SettledRelay,
} from '../../relayer/index.ts'
import { budgetChange } from '../gasless.ts'
import { frozenOnes } from './frozen.ts'
import { endTransfers, failedTransfer, networkOf } from './outcome.ts'
import { keyOf, listToAdmit, lockSweeps, markLeft, markSent } from './relay-store.ts'

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
    onSpent: async (_, spent) => ({
      gas: spent.map(({ relay, wei }) => budgetChange(relay, ctx.gasPrices.worthOf(networkOf(relay.network), wei))),
      audits: [],
    }),
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

function settleAll(ctx: System, tx: Tx, settled: readonly SettledRelay[]): Promise<Closing> {
  const ends = settled.map(({ relay, transactionHash: txHash, wei }) => {
    return { ...keyOf(relay.subjectId), status: 'swept', txHash, reason: null, wei } as const
  })
  return endTransfers(ctx, tx, ends)
}

function failAll(ctx: System, tx: Tx, failed: readonly FailedRelay[]): Promise<Closing> {
  const ends = failed.map(({ relay, fault }) => failedTransfer(keyOf(relay.subjectId), reasonOf(fault)))
  return endTransfers(ctx, tx, ends)
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

import { requireNetwork } from '@purser/protocol'
import type { Tx } from '../../../platform/db/db.ts'
import type { RecurringTask } from '../../../platform/recurring-task.ts'
import { systemCtx } from '../../../platform/work/runner.ts'
import { changeGasLast } from '../../plans/index.ts'
import {
  type Admission,
  type FailedRelay,
  type Relay,
  type RelayFault,
  type RelayPurpose,
  type SettledRelay,
  signPlanned,
} from '../../relayer/index.ts'
import { budgetChange, signGasless } from '../gasless.ts'
import type { Deps } from '../ports.ts'
import { type EndingCtx, endPlanned, failedTransfer, frozenOnes, recordEnded } from './outcome.ts'
import {
  isAnyPlanned,
  keyOf,
  listToAdmit,
  lockSweeps,
  markLeft,
  markSent,
  signing,
  takeUnsigned,
  type UnsignedRow,
} from './relay-store.ts'

/** Name of sweep transfers in the relayer. */
const sweepPurpose = 'wallets.sweeps'

const frozenFault: RelayFault = { kind: 'refused', reason: 'amount-frozen' }

/** Relay purpose of sweep transfers. Payments have priority: sweeps leave half of the lane free. */
export function sweepRelays(deps: Pick<Deps, 'clock' | 'gasPrices' | 'random'>): RelayPurpose {
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
    onSpent: async (tx, spent) =>
      changeGasLast(
        tx,
        spent.map(({ relay, wei }) => budgetChange(relay, ctx.gasPrices.worthOf(requireNetwork(relay.network), wei))),
      ),
  }
}

/**
 * Transfers from children with unscreened deposits wait, and those whose child had money frozen since the sweep was stored are not sent.
 */
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

function settleAll(ctx: EndingCtx, tx: Tx, settled: readonly SettledRelay[]): Promise<void> {
  const ends = settled.map(({ relay, transactionHash: txHash, wei }) => {
    return { ...keyOf(relay.subjectId), status: 'swept', txHash, reason: null, wei } as const
  })
  return recordEnded(ctx, tx, ends)
}

function failAll(ctx: EndingCtx, tx: Tx, failed: readonly FailedRelay[]): Promise<void> {
  const ends = failed.map(({ relay, fault }) => failedTransfer(keyOf(relay.subjectId), reasonOf(fault)))
  return recordEnded(ctx, tx, ends)
}

/** Maps the fault of a relay to the reason of a sweep. */
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

/** Signs transfers of sweeps with their children's keys. */
export const signSweeps: RecurringTask<Deps> = signPlanned<Deps, UnsignedRow>({
  name: 'wallets.sign-sweeps',
  everyMs: 300,
  purpose: sweepPurpose,
  isAnyPlanned,
  take: takeUnsigned,
  createSign:
    ({ walletKeys }) =>
    (transfer) => {
      const { organisationId, environment, account, childIndex: index, fromAddress: address } = transfer
      const signer = walletKeys.signer({ organisationId, environment }, { account, index, address })
      return signGasless(signer, requireNetwork(transfer.network), transfer)
    },
  signing,
  idsOf: ({ sweepId }) => ({ sweepId }),
  endUnsigned: (ctx, transfer) => endPlanned(ctx, transfer, 'authorization-expired'),
})

import { requireNetwork } from '@purser/protocol'
import type { Tx } from '../../../platform/db/db.ts'
import type { Recurring } from '../../../platform/job.ts'
import { systemCtx } from '../../../platform/work/runner.ts'
import { changeGasLast } from '../../plans/index.ts'
import {
  type Admission,
  type FailedRelay,
  type Relay,
  type RelayFault,
  type RelayPurpose,
  relays,
  type SettledRelay,
} from '../../relayer/index.ts'
import { budgetChange, signGasless } from '../gasless.ts'
import type { Ctx, Deps } from '../ports.ts'
import { endPlanned, failedTransfer, frozenOnes, recordEnded } from './outcome.ts'
import {
  isAnyPlanned,
  keyOf,
  listToAdmit,
  lockSweeps,
  markLeft,
  markSent,
  type SignedTransfer,
  signing,
  takeUnsigned,
  type UnsignedRow,
} from './relay-store.ts'

type System = Omit<Ctx, 'tenant'>

/** Name of sweep transfers in the relayer. */
const sweepPurpose = 'wallets.sweeps'

const frozenFault: RelayFault = { kind: 'refused', reason: 'amount-frozen' }

/** Relay purpose of sweep transfers. Payments have priority: sweeps leave half of the lane free. */
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

function settleAll(ctx: System, tx: Tx, settled: readonly SettledRelay[]): Promise<void> {
  const ends = settled.map(({ relay, transactionHash: txHash, wei }) => {
    return { ...keyOf(relay.subjectId), status: 'swept', txHash, reason: null, wei } as const
  })
  return recordEnded(ctx, tx, ends)
}

function failAll(ctx: System, tx: Tx, failed: readonly FailedRelay[]): Promise<void> {
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

const signedPerRunMax = 200

/**
 * Signs transfers with their children's keys and adds them to the relayer's queue, in one statement. Idempotent: of two signatures with one
 * nonce the first is stored, and a token accepts a nonce once.
 */
export const signSweeps: Recurring<Deps> = {
  name: 'wallets.sign-sweeps',
  everyMs: 300,
  isDue: (deps) => isAnyPlanned(networksOf(deps)),
  async run(ctx) {
    while ((await signSome(ctx)) === signedPerRunMax);
  },
}

function networksOf({ chains }: Pick<Deps, 'chains'>): readonly string[] {
  return chains.configured.filter(({ settlesEip3009 }) => settlesEip3009).map(({ name }) => name)
}

/** Returns how many were signed. Transfers that fail are retried after those with fewer attempts. */
async function signSome(ctx: System): Promise<number> {
  const planned = await takeUnsigned(ctx.db, networksOf(ctx), signedPerRunMax)
  if (planned.length === 0) return 0
  const tried = await Promise.all(planned.map((transfer) => signOne(ctx, transfer)))
  const signed = tried.filter((one) => one !== undefined)
  const failures = await relays.enqueueEach(ctx.db, sweepPurpose, signed, signing)
  for (const [index, failure] of failures.entries())
    if (failure !== undefined)
      ctx.log.error({ err: failure, sweepId: signed[index]?.sweepId }, 'a transfer was not added to the queue')
  return signed.length
}

/** Ends a transfer that expired without a signature: nobody can have sent it. */
async function signOne(ctx: System, transfer: UnsignedRow): Promise<SignedTransfer | undefined> {
  const { sweepId, childAddressId, organisationId, environment, account, childIndex: index } = transfer
  try {
    const signer = ctx.walletKeys.signer(
      { organisationId, environment },
      { account, index, address: transfer.fromAddress },
    )
    return { sweepId, childAddressId, payload: await signGasless(signer, requireNetwork(transfer.network), transfer) }
  } catch (error) {
    ctx.log.error({ err: error, sweepId }, 'a transfer of a sweep could not be signed; retrying')
    if (transfer.isPast) await endPlanned(ctx, transfer, 'authorization-expired')
    return undefined
  }
}

import { requireNetwork } from '@purser/protocol'
import type { ActingCtx } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'
import type { RecurringTask } from '../../../platform/recurring-task.ts'
import { systemCtx } from '../../../platform/work/runner.ts'
import { changeGasLast } from '../../plans/index.ts'
import {
  type CarriedRelay,
  type FailedRelay,
  type Relay,
  type RelayFault,
  type RelayPurpose,
  type SettledRelay,
  signPlanned,
} from '../../relayer/index.ts'
import { budgetChange, createAccountSigners, signGasless } from '../../wallets/index.ts'
import { endAll, endOrAwait } from '../ending.ts'
import { markConfirmed, markSent, markUndone, type SeenTransfer, type TransferEnd } from '../outcome-store.ts'
import type { Ctx, Deps } from '../ports.ts'
import { lockTransfer, lockTransfers, type TransferId } from '../store.ts'
import {
  gaslessPurpose,
  isAnyUnsigned,
  lockUnsigned,
  markGaslessEnded,
  signing,
  takeUnsigned,
  type UnsignedRow,
} from './store.ts'

type System = Omit<Ctx, 'tenant'>

/**
 * Relay purpose of transfers that a wallet signs and the settler sends. A quarter of the lane is reserved for payments. A transfer that the
 * chain refuses waits for its expiry: until then anyone who has seen the signature can use it, so no failure is reported before.
 */
export function gaslessTransfers(deps: Deps): RelayPurpose {
  const ctx = systemCtx(deps)
  return {
    purpose: gaslessPurpose,
    share: 0.75,
    refusal: 'wait',
    expiry: 'final',
    lock: async (tx, subjectIds) => void (await lockTransfers(tx, subjectIds.map(transferIdOf))),
    onSent: (tx, carried) => markSent(tx, carried.map(seenIn)),
    async onIncluded(tx, carried) {
      await markConfirmed(tx, carried.map(seenIn), ctx.clock.now())
      tx.afterCommit(() => ctx.outcomeWaiters.wake())
    },
    onReorganized: (tx, relays) => markUndone(tx, relays.map(transferOf), 'keep'),
    // The hash of a transaction that did not move the transfer is not shown.
    onLeft: (tx, relays) => markUndone(tx, relays.map(transferOf), 'clear'),
    onSettled: (tx, settled) => settleAll(ctx, tx, settled),
    onFailed: (tx, failed) => failAll(ctx, tx, failed),
    onSpent: async (tx, spent) =>
      changeGasLast(
        tx,
        spent.map(({ relay, wei }) => budgetChange(relay, worthOf(ctx, relay.network, wei))),
      ),
  }
}

/** Their signatures are used up, and the cost is known. The transfers end when their block is final. */
async function settleAll(
  ctx: ActingCtx & Pick<System, 'db' | 'gasPrices' | 'outcomeWaiters'>,
  tx: Tx,
  settled: readonly SettledRelay[],
): Promise<void> {
  await settleRelays(ctx, tx, settled)
  await endSigning(
    ctx,
    tx,
    settled.map(({ relay, wei }) => ({ transferId: transferOf(relay), wei })),
  )
}

/** Ends the transfers of settled relays, or keeps them open until their block is final. */
export async function settleRelays(
  ctx: ActingCtx & Pick<System, 'db'>,
  tx: Tx,
  settled: readonly SettledRelay[],
): Promise<void> {
  for (const [name, some] of Map.groupBy(settled, ({ relay }) => relay.network)) {
    const moved = some.map(({ relay, transactionHash: hash, block }) => {
      if (block === undefined) throw new Error('an authorization is settled by a block')
      const transferId = transferOf(relay)
      const seen = { transferId, hash, rawReceived: undefined }
      return { transferId, transactionId: undefined, block, fault: undefined, seen }
    })
    await endOrAwait(ctx, tx, requireNetwork(name), moved)
  }
}

function failAll(
  ctx: ActingCtx & Pick<System, 'db' | 'gasPrices' | 'outcomeWaiters'>,
  tx: Tx,
  failed: readonly FailedRelay[],
): Promise<void> {
  const ends = failed.map(({ relay, fault }) => ({ transferId: transferOf(relay), fault: reasonOf(fault) }))
  return endGasless(ctx, tx, ends)
}

/** Maps the fault of a relay to the reason of a transfer. */
export function reasonOf({ kind }: RelayFault): string {
  const words = {
    expired: 'authorization-expired',
    canceled: 'authorization-cancelled',
    'nonce-used': 'not-received',
    'insufficient-balance': 'transfer-refused',
    refused: 'transfer-refused',
    'not-carried': 'transfer-refused',
  } as const
  return words[kind]
}

/** Ends transfers without a transaction and releases their unused reservations; the caller has locked them. */
async function endGasless(
  ctx: ActingCtx & Pick<System, 'db' | 'gasPrices' | 'outcomeWaiters'>,
  tx: Tx,
  ends: readonly TransferEnd[],
): Promise<void> {
  await endAll(ctx, tx, ends)
  await endSigning(
    ctx,
    tx,
    ends.map(({ transferId }) => ({ transferId, wei: 0n })),
  )
}

/** A transfer that is signed no more, and the operator's cost of its transaction, in wei. */
interface Signed {
  readonly transferId: TransferId
  readonly wei: bigint
}

/** Replaces what transfers reserved of the gas budget by what they cost. */
async function endSigning(
  ctx: Pick<System, 'gasPrices' | 'outcomeWaiters'>,
  tx: Tx,
  ends: readonly Signed[],
): Promise<void> {
  const transferIds = ends.map(({ transferId }) => transferId)
  const rows = await markGaslessEnded(tx, transferIds)
  tx.afterCommit(() => ctx.outcomeWaiters.resolve(transferIds))
  const wei = new Map(ends.map((end) => [end.transferId, end.wei]))
  const gas = rows.map((row) =>
    budgetChange(row, worthOf(ctx, row.network, wei.get(row.transferId) ?? 0n) - row.gasReservedNanoUsd),
  )
  changeGasLast(tx, gas)
}

function seenIn({ relay, hash }: CarriedRelay): SeenTransfer {
  return { transferId: transferOf(relay), hash, rawReceived: undefined }
}

/** The transfer whose signature a relay carries. */
export function transferOf({ subjectId }: Relay): TransferId {
  return transferIdOf(subjectId)
}

export function transferIdOf(subjectId: string): TransferId {
  return id('wtx').parse(subjectId)
}

function worthOf({ gasPrices }: Pick<Ctx, 'gasPrices'>, name: string, wei: bigint): bigint {
  return gasPrices.worthOf(requireNetwork(name), wei)
}

/** Signs gasless transfers with their wallets. */
export const signTransfers: RecurringTask<Deps> = signPlanned<Deps, UnsignedRow>({
  name: 'transfers.sign-gasless',
  everyMs: 150,
  purpose: gaslessPurpose,
  isAnyPlanned: isAnyUnsigned,
  take: takeUnsigned,
  createSign(ctx) {
    const signerOf = createAccountSigners(ctx)
    return async (transfer) => {
      const signer = await signerOf(transfer.fromAddress)
      if (signer === undefined) throw new Error('no signer for the address')
      return signGasless(signer, requireNetwork(transfer.network), transfer)
    }
  },
  signing,
  idsOf: ({ transferId }) => ({ transferId }),
  endUnsigned,
})

function endUnsigned(
  ctx: ActingCtx & Pick<System, 'db' | 'gasPrices' | 'outcomeWaiters'>,
  { transferId }: UnsignedRow,
): Promise<void> {
  return ctx.db.tx(async (tx) => {
    await lockTransfer(tx, transferId)
    if (await lockUnsigned(tx, transferId)) await endGasless(ctx, tx, [{ transferId, fault: 'authorization-expired' }])
  })
}

import { networkByName } from '@purser/protocol'
import type { Ctx, Deps } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'
import { systemCtx } from '../../../platform/work/runner.ts'
import { changeGasLast } from '../../plans/index.ts'
import type { CarriedRelay, FailedRelay, Relay, RelayFault, RelayPurpose, SettledRelay } from '../../relayer/index.ts'
import { budgetChange } from '../../wallets/index.ts'
import { endAll } from '../ending.ts'
import { markConfirmed, markSent, markUndone, type SeenTransfer, type TransferEnd } from '../outcome-store.ts'
import { lockTransfers, type TransferId } from '../store.ts'
import { resolveWaiting, wakeWaiting } from '../waiting.ts'
import { markEnded } from './store.ts'

type System = Omit<Ctx, 'tenant'>

/** Name of gasless transfers in the relayer. */
export const gaslessPurpose = 'transfers.gasless'

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
    lock: async (tx, subjectIds) => void (await lockTransfers(tx, subjectIds.map(transferIdOf))),
    onSent: (tx, carried) => markSent(tx, carried.map(seenIn)),
    async onIncluded(tx, carried) {
      await markConfirmed(tx, carried.map(seenIn), ctx.clock.now())
      tx.afterCommit(() => wakeWaiting(ctx.db))
    },
    onReorganized: (tx, relays) => markUndone(tx, relays.map(transferOf), 'kept'),
    // The hash of a transaction that did not move the transfer is not shown.
    onLeft: (tx, relays) => markUndone(tx, relays.map(transferOf), 'forgotten'),
    onSettled: (tx, settled) => settleAll(ctx, tx, settled),
    onFailed: (tx, failed) => failAll(ctx, tx, failed),
    onSpent: async (tx, spent) =>
      changeGasLast(
        tx,
        spent.map(({ relay, wei }) => budgetChange(relay, worthOf(ctx, relay.network, wei))),
      ),
  }
}

function settleAll(ctx: System, tx: Tx, settled: readonly SettledRelay[]): Promise<void> {
  const ends = settled.map(({ relay, transactionHash: hash, wei }) => {
    const transferId = transferOf(relay)
    return { transferId, fault: undefined, seen: { transferId, hash, rawReceived: undefined }, wei }
  })
  return endGasless(ctx, tx, ends)
}

function failAll(ctx: System, tx: Tx, failed: readonly FailedRelay[]): Promise<void> {
  const ends = failed.map(({ relay, fault }) => {
    return { transferId: transferOf(relay), fault: reasonOf(fault), wei: 0n }
  })
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

/** How a gasless transfer ended, and the operator's cost of its transaction, in wei. */
type GaslessEnd = TransferEnd & { readonly wei: bigint }

/** Ends transfers and releases their unused reservations; the caller has locked them. */
export async function endGasless(ctx: System, tx: Tx, ends: readonly GaslessEnd[]): Promise<void> {
  const transferIds = ends.map(({ transferId }) => transferId)
  await endAll(ctx, tx, ends)
  const rows = await markEnded(tx, transferIds)
  tx.afterCommit(() => resolveWaiting(ctx.db, transferIds))
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
  const network = networkByName(name)
  if (network === undefined) throw new Error(`a transfer is on ${name}, which this build does not know`)
  return gasPrices.worthOf(network, wei)
}

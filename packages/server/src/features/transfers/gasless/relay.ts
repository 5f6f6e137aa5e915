import { networkByName } from '@purser/protocol'
import type { Ctx, Deps } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'
import { systemCtx } from '../../../platform/work/runner.ts'
import {
  type CarriedRelay,
  type Closing,
  close,
  type FailedRelay,
  type Relay,
  type RelayFault,
  type RelayPurpose,
  type SettledRelay,
} from '../../relayer/index.ts'
import { budgetChange } from '../../wallets/index.ts'
import { auditsOf, endAll } from '../ending.ts'
import { markConfirmed, markSent, markUndone, type SeenTransfer, type TransferEnd } from '../outcome-store.ts'
import { lockTransfers, type TransferId } from '../store.ts'
import { tellWaiting, wakeWaiting } from '../waiting.ts'
import { markEnded } from './store.ts'

type System = Omit<Ctx, 'tenant'>

/** Name under which the relayer knows gasless transfers. */
export const gaslessPurpose = 'transfers.gasless'

/**
 * What becomes of transfers that a wallet signs and the settler sends. A quarter of the lane is left to payments. One that the chain refuses
 * waits for its end: whoever has seen the signature can use it until then, and its caller receives no failure before.
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
    // Its hash says nothing about a transfer any more that it did not move.
    onLeft: (tx, relays) => markUndone(tx, relays.map(transferOf), 'forgotten'),
    onSettled: (tx, settled) => settleAll(ctx, tx, settled),
    onFailed: (tx, failed) => failAll(ctx, tx, failed),
    onSpent: async (_, spent) => ({
      gas: spent.map(({ relay, wei }) => budgetChange(relay, worthOf(ctx, relay.network, wei))),
      audits: [],
    }),
  }
}

function settleAll(ctx: System, tx: Tx, settled: readonly SettledRelay[]): Promise<Closing> {
  const ends = settled.map(({ relay, transactionHash: hash, wei }) => {
    const transferId = transferOf(relay)
    return { transferId, fault: undefined, seen: { transferId, hash, rawReceived: undefined }, wei }
  })
  return endGaslessAll(ctx, tx, ends)
}

function failAll(ctx: System, tx: Tx, failed: readonly FailedRelay[]): Promise<Closing> {
  const ends = failed.map(({ relay, fault }) => {
    return { transferId: transferOf(relay), fault: reasonOf(fault), wei: 0n }
  })
  return endGaslessAll(ctx, tx, ends)
}

/** The transfer's own word for why its relay ended. */
function reasonOf({ kind }: RelayFault): string {
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

/** How a gasless transfer ended, and what its transaction cost the operator, in wei. */
type GaslessEnd = TransferEnd & { readonly wei: bigint }

/** Ends transfers and gives back what they reserved and did not use; the caller has them locked. Returns what the transaction closes with. */
async function endGaslessAll(ctx: System, tx: Tx, ends: readonly GaslessEnd[]): Promise<Closing> {
  const transferIds = ends.map(({ transferId }) => transferId)
  const ended = await endAll(ctx, tx, ends)
  const rows = await markEnded(tx, transferIds)
  tx.afterCommit(() => tellWaiting(ctx.db, transferIds))
  const wei = new Map(ends.map((end) => [end.transferId, end.wei]))
  const gas = rows.map((row) =>
    budgetChange(row, worthOf(ctx, row.network, wei.get(row.transferId) ?? 0n) - row.gasReservedNanoUsd),
  )
  return { gas, audits: auditsOf(ended) }
}

/** The same for a transaction that ends nothing else. */
export async function endGasless(ctx: System, tx: Tx, ends: readonly GaslessEnd[]): Promise<void> {
  await close(ctx, tx, [await endGaslessAll(ctx, tx, ends)])
}

function seenIn({ relay, hash }: CarriedRelay): SeenTransfer {
  return { transferId: transferOf(relay), hash, rawReceived: undefined }
}

function transferOf({ subjectId }: Relay): TransferId {
  return transferIdOf(subjectId)
}

function transferIdOf(subjectId: string): TransferId {
  return id('wtx').parse(subjectId)
}

function worthOf({ gasPrices }: Pick<Ctx, 'gasPrices'>, name: string, wei: bigint): bigint {
  const network = networkByName(name)
  if (network === undefined) throw new Error(`a transfer is on ${name}, which this build does not know`)
  return gasPrices.worthOf(network, wei)
}

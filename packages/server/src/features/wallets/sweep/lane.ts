import type { Network } from '@purser/protocol'
import type { LaneHandler, Lanes, Receipt } from '../../../chain/port.ts'
import type { Ctx, Deps } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { pause, systemCtx } from '../../../platform/work/runner.ts'
import { authorisedCall, shownBy, signAuthorised } from '../authorisation.ts'
import { unscreenedSince } from '../screening/unscreened.ts'
import { frozenOnes } from './frozen.ts'
import {
  assignTransaction,
  countWaiting,
  listInTransaction,
  listUnsigned,
  lockSigned,
  lockStillSigned,
  lockSweeps,
  markHash,
  markSigned,
  markUnresolved,
  type SignedTransfer,
  type TransferRow,
  type UnsignedRow,
} from './lane-store.ts'
import { recordEnded } from './outcome.ts'

type System = Omit<Ctx, 'tenant'>

/** Name under which the lane knows these transactions. */
export const sweepPurpose = 'wallets.sweep'

/** Transfers in one transaction at most: 10 million gas, below the cap of EIP-7825 (2^24) and every network's block. */
const batchMax = 100
const signedPerTurnMax = 200
const pollMs = 300
const failureMs = 1_000

export interface SweepLanes {
  stop(): Promise<void>
}

/**
 * Signs planned transfers and gathers them into transactions of the settler's lane, one loop per network. An authorisation is
 * stored before it is sent, and transfers and their transaction are tied in one commit with its nonce, so a crash anywhere is
 * followed by another process that goes on from the rows.
 */
export function startSweepLanes(deps: Deps, lanes: Lanes): SweepLanes {
  const stopping = new AbortController()
  const ctx = systemCtx(deps)
  const loops = lanes.networks.map(async (network) => {
    while (!stopping.signal.aborted) {
      try {
        while (await passSweeps(ctx, lanes, network)) if (stopping.signal.aborted) break
      } catch (error) {
        deps.log.error({ err: error, network: network.name }, 'sweeps could not go on; they stay waiting')
        await pause(failureMs, stopping.signal)
      }
      await pause(pollMs, stopping.signal)
    }
  })
  return {
    async stop() {
      stopping.abort()
      await Promise.all(loops)
    },
  }
}

/**
 * One pass: signs what is planned and plans one transaction; answers whether to look again at once. Payments come first: sweeps
 * leave half of the lane free.
 */
export async function passSweeps(ctx: System, lanes: Lanes, network: Network): Promise<boolean> {
  if ((await countWaiting(ctx.db, network.name)) === 0n) return false
  await signPlanned(ctx, network)
  if ((await lanes.openCount(network)) >= lanes.openMax / 2) return false
  await lanes.prepare(network)
  const since = await unscreenedSince(ctx)
  const { isMore, frozen } = await ctx.db.tx((tx) => planBatch(ctx, tx, lanes, { network, since }))
  if (frozen.length > 0) await endFrozen(ctx, frozen)
  return isMore
}

async function signPlanned(ctx: System, network: Network): Promise<void> {
  for (const transfer of await listUnsigned(ctx.db, network.name, signedPerTurnMax)) {
    try {
      await markSigned(ctx.db, transfer, await signTransfer(ctx, network, transfer))
    } catch (error) {
      // One that cannot be signed must not keep those behind it from being swept; it stays planned until it lapses.
      ctx.log.error({ err: error, sweepId: transfer.sweepId }, 'a transfer of a sweep could not be signed')
    }
  }
}

function signTransfer(ctx: System, network: Network, transfer: UnsignedRow): Promise<Uint8Array> {
  const { organisationId, environment, account, childIndex: index, fromAddress: address } = transfer
  const signer = ctx.walletKeys.signer({ organisationId, environment }, { account, index, address })
  return signAuthorised(signer, network, transfer)
}

interface Planned {
  /** Whether others may wait behind those that were looked at. */
  readonly isMore: boolean
  /** Left out, and to be ended. */
  readonly frozen: readonly SignedTransfer[]
}

async function planBatch(
  ctx: System,
  tx: Tx,
  lanes: Lanes,
  { network, since }: { readonly network: Network; readonly since: Date | undefined },
): Promise<Planned> {
  const locked = await lockSigned(tx, network.name, { most: batchMax, unscreenedSince: since })
  const lapsing = new Set(locked.filter((transfer) => isLapsing(transfer, ctx.clock.now())))
  const frozen = await frozenOnes(tx, locked)
  const transfers = locked.filter((transfer) => !frozen.has(transfer) && !lapsing.has(transfer))
  const isMore = transfers.length > 0 && locked.length === batchMax
  if (transfers.length === 0) return { isMore, frozen: [...frozen] }
  const planned = { network, ...authorisedCall(transfers), value: 0n, purpose: sweepPurpose }
  await assignTransaction(tx, transfers, await lanes.plan(tx, planned))
  tx.afterCommit(() => lanes.nudge(network))
  return { isMore, frozen: [...frozen] }
}

/**
 * Ends transfers of frozen money, in a transaction of its own: sweeps are locked before their transfers wherever any end, and never together
 * with the lane. What was let go or taken by another process meanwhile is left.
 */
function endFrozen(ctx: System, transfers: readonly SignedTransfer[]): Promise<void> {
  return ctx.db.tx(async (tx) => {
    await lockSweeps(tx, [...new Set(transfers.map((transfer) => transfer.sweepId))])
    const frozen = await frozenOnes(tx, await lockStillSigned(tx, transfers))
    await recordEnded(ctx, tx, [...frozen], { status: 'failed', reason: 'amount-frozen' })
  })
}

/** One about to end is left to `resolveSweeps`: sent now it would only burn gas. */
function isLapsing({ validBefore }: TransferRow, now: Date): boolean {
  return validBefore.getTime() <= now.getTime() + 2_000
}

/** What the lane does with a sweep's transaction, inside the database transaction that marks the step. */
export function sweepHandler(deps: Deps): LaneHandler {
  const ctx = systemCtx(deps)
  return {
    purpose: sweepPurpose,
    async onSent(tx, transaction) {
      await markHash(tx, transaction.id, transaction.hash)
    },
    async onDisplaced(tx, transaction) {
      await markUnresolved(tx, await listInTransaction(tx, transaction.id))
    },
    async onFinal(tx, transaction, receipt) {
      const { swept, rest } = await sorted(tx, transaction.id, receipt)
      await recordEnded(ctx, tx, swept, { status: 'swept', txHash: receipt.transactionHash })
      await markUnresolved(tx, rest)
    },
  }
}

/** The transfers of a transaction whose money it moved, and the others. */
async function sorted(tx: Tx, transactionId: string, receipt: Receipt) {
  const transfers = await listInTransaction(tx, transactionId)
  const shown = shownBy(receipt.status === 'success' ? receipt.logs : [])
  const isSwept = (transfer: TransferRow): boolean => shown(transfer) === 'moved'
  return { swept: transfers.filter(isSwept), rest: transfers.filter((transfer) => !isSwept(transfer)) }
}

import type { Network } from '@purser/protocol'
import type { ChainTransactionId, LaneHandler, LaneTransaction, Receipt } from '../../../chain/port.ts'
import { instantOf } from '../../../platform/clock.ts'
import type { Ctx, Deps } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { pause } from '../../../platform/work/loop.ts'
import { systemCtx } from '../../../platform/work/runner.ts'
import { authorisedCall, createAccountSigners, shownBy, signAuthorised } from '../../wallets/index.ts'
import { auditEnds, endAll } from '../ending.ts'
import { markConfirmed, markPending, markSent, type TransferEnd } from '../outcome-store.ts'
import { lockTransfers, type TransferId } from '../store.ts'
import {
  type AuthorisedRow,
  assignTransaction,
  listInTransaction,
  listUnsigned,
  listWaitingNetworks,
  lockSigned,
  markEnded,
  markSigned,
  markUnresolved,
} from './store.ts'

type System = Omit<Ctx, 'tenant'>

/** Name under which the settler's lane knows these transactions. */
export const authorisedPurpose = 'transfers.authorised'

/** In one transaction at most: 10 million gas, below the cap of EIP-7825 (2^24) and every network's block. */
const batchMax = 100
const signedPerTurnMax = 200
/** One about to end is left to `resolveAuthorised`: sent now it would only burn gas. */
const lapsingMs = 2_000
const pollMs = 150
const failureMs = 1_000

export interface AuthorisedLanes {
  stop(): Promise<void>
}

/**
 * Has children sign their transfers and gathers these into transactions of the settler's lane. An authorisation is stored before it is
 * sent, and tied to its transaction in one commit with that one's nonce, so a crash anywhere is followed by another process that goes
 * on from the rows.
 */
export function startAuthorisedLanes(deps: Deps): AuthorisedLanes {
  const stopping = new AbortController()
  const ctx = systemCtx(deps)
  const loop = (async () => {
    while (!stopping.signal.aborted) {
      const pauseMs = await passAll(ctx).then(
        () => pollMs,
        (error: unknown) => {
          deps.log.error({ err: error }, 'authorised transfers could not go on; they stay waiting')
          return failureMs
        },
      )
      await pause(pauseMs, stopping.signal)
    }
  })()
  return {
    async stop() {
      stopping.abort()
      await loop
    },
  }
}

/** A network whose node is down keeps no other from going on. */
async function passAll(ctx: System): Promise<void> {
  const waiting = await listWaitingNetworks(ctx.db)
  const networks = ctx.chains.configured.filter((network) => network.settlesEip3009)
  const passed = await Promise.allSettled(
    networks.filter(({ name }) => waiting.includes(name)).map((network) => passAuthorised(ctx, network)),
  )
  for (const one of passed) if (one.status === 'rejected') throw one.reason
}

/** One pass over a network: signs what is planned and plans one transaction. Payments come first: a quarter of the lane is left to them. */
export async function passAuthorised(ctx: System, network: Network): Promise<void> {
  await signPlanned(ctx, network)
  const { lanes, settlerAddress } = ctx
  const { batch } = await lanes.openCounts(ctx.db, network, settlerAddress)
  if (batch >= (lanes.slots.batch * 3) / 4) return
  await lanes.prepare(network, settlerAddress)
  await ctx.db.tx(async (tx) => {
    const endingAfter = instantOf(ctx.clock.now().getTime() + lapsingMs)
    const transfers = await lockSigned(tx, network.name, { most: batchMax, endingAfter })
    if (transfers.length === 0) return
    const planned = { network, ...authorisedCall(transfers), value: 0n, purpose: authorisedPurpose }
    await assignTransaction(tx, idsOf(transfers), await lanes.plan(tx, settlerAddress, planned))
    tx.afterCommit(() => lanes.notify(network))
  })
}

async function signPlanned(ctx: System, network: Network): Promise<void> {
  const signerOf = createAccountSigners(ctx)
  for (const transfer of await listUnsigned(ctx.db, network.name, signedPerTurnMax)) {
    try {
      const signer = await signerOf(transfer.fromAddress)
      if (signer === undefined) throw new Error('nobody signs for the address')
      await markSigned(ctx.db, transfer.transferId, await signAuthorised(signer, network, transfer))
    } catch (error) {
      // One that cannot be signed must not keep those behind it from going; it stays planned until it lapses.
      ctx.log.error({ err: error, transferId: transfer.transferId }, 'a transfer could not be signed')
    }
  }
}

/** What the settler's lane does with these transactions, inside the database transaction that marks the step. */
export function authorisedHandler(deps: Deps): LaneHandler {
  const ctx = systemCtx(deps)
  return {
    purpose: authorisedPurpose,
    async onSent(tx, transactions) {
      for (const { id, hash } of transactions)
        await markSent(
          tx,
          (await lockCarried(tx, id)).map(({ transferId }) => ({ transferId, hash })),
        )
    },
    async onMined(tx, mined) {
      for (const { transaction, receipt } of mined) await confirm(ctx, tx, transaction, receipt)
    },
    async onReorganised(tx, transactions) {
      for (const { id } of transactions) await unconfirm(tx, await lockCarried(tx, id))
    },
    async onReplaced(tx, transactions) {
      for (const { id } of transactions) await leaveToChain(ctx, tx, await lockCarried(tx, id))
    },
    async onFinal(tx, mined) {
      for (const { transaction, receipt } of mined) await finalize(ctx, tx, transaction, receipt)
    },
  }
}

async function confirm(ctx: System, tx: Tx, { id, hash }: LaneTransaction, receipt: Receipt): Promise<void> {
  const { moved, used, left } = sorted(await lockCarried(tx, id), receipt)
  await unconfirm(tx, [...used, ...left])
  const seen = moved.map(({ transferId }) => ({ transferId, hash, rawReceived: undefined }))
  await markConfirmed(tx, seen, ctx.clock.now())
}

async function finalize(ctx: System, tx: Tx, { id }: LaneTransaction, receipt: Receipt): Promise<void> {
  const { moved, used, left } = sorted(await lockCarried(tx, id), receipt)
  await leaveToChain(ctx, tx, left)
  const done = moved.map(({ transferId }) => ({ transferId, fault: undefined }))
  await endAuthorised(ctx, tx, [...done, ...used.map(({ transferId }) => ({ transferId, fault: 'not-received' }))])
}

/** The transfers that a transaction carries and that have no end, their rows locked first, as wherever a transfer and what it is sent by are. */
async function lockCarried(tx: Tx, transactionId: ChainTransactionId): Promise<AuthorisedRow[]> {
  const transfers = await listInTransaction(tx, transactionId)
  await lockTransfers(tx, idsOf(transfers))
  return transfers
}

/** Those whose money a block moved, those that it used without their money being told of, and those that it did not carry. */
function sorted(transfers: readonly AuthorisedRow[], { status, logs }: Receipt) {
  const shown = Map.groupBy(transfers, shownBy(status === 'success' ? logs : []))
  return { moved: shown.get('moved') ?? [], used: shown.get('used') ?? [], left: shown.get('nothing') ?? [] }
}

/**
 * Their transaction is over and did not carry them. That is no failure: anybody may have brought the authorisation to the chain, or may
 * still do so, and the caller is told nothing until the chain says what became of it.
 */
async function leaveToChain(ctx: System, tx: Tx, transfers: readonly AuthorisedRow[]): Promise<void> {
  await unconfirm(tx, transfers)
  await markUnresolved(tx, idsOf(transfers), ctx.clock.now())
}

/** What a block showed is no longer so. */
async function unconfirm(tx: Tx, transfers: readonly AuthorisedRow[]): Promise<void> {
  for (const { transferId } of transfers) await markPending(tx, transferId, null)
}

/** Ends transfers and their authorisations together; the caller holds them, and has seen on chain, at its depth, that it is so for good. */
export async function endAuthorised(ctx: System, tx: Tx, ends: readonly TransferEnd[]): Promise<void> {
  await markEnded(
    tx,
    ends.map(({ transferId }) => transferId),
  )
  await auditEnds(ctx, tx, await endAll(ctx, tx, ends))
}

function idsOf(transfers: readonly AuthorisedRow[]): TransferId[] {
  return transfers.map(({ transferId }) => transferId)
}

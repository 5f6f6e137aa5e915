import { type Network, networkByName } from '@purser/protocol'
import type { LaneHandler, Lanes, Receipt } from '../../chain/port.ts'
import type { Ctx, Deps } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import type { PaymentId } from '../../platform/ids.ts'
import type { Recurring } from '../../platform/job.ts'
import { pause, systemCtx } from '../../platform/work/runner.ts'
import { gasOf, settledBy, settlementCall } from './settlement-call.ts'
import { recordSettled } from './settlement-outcome.ts'
import { resolveLapsed, resolveUnresolved } from './settlement-resolve.ts'
import {
  assignTransaction,
  countWaiting,
  forgetHash,
  listInTransaction,
  listWaitingPayers,
  lockWaiting,
  markHash,
  markUnresolved,
  type SettlementRow,
} from './settlement-store.ts'

/** Name under which the lane knows these transactions. */
export const settlementPurpose = 'payments.settle'

/** Payments in one transaction at most, and the gas that one may ask for: below the cap of EIP-7825 (2^24). */
const batchMax = 100
const batchGasMax = 14_000_000n
/** How long a small batch may wait for company while earlier transactions of the lane are not in a block yet. */
const companyMsMax = 600
const pollMs = 200

type System = Omit<Ctx, 'tenant'>

export interface SettlementLanes {
  nudge(): void
  stop(): Promise<void>
}

/**
 * Gathers payments that want to settle into transactions, one lane per network. Payments and their transaction are
 * tied in one commit with the transaction's nonce, so a crash leaves both or neither; the chain room then sends it.
 */
export function createSettlementLanes(deps: Deps, lanes: Lanes): SettlementLanes {
  const stopping = new AbortController()
  let wake = Promise.withResolvers<void>()
  const ctx = systemCtx(deps)
  const loops = lanes.networks.map(async (network) => {
    while (!stopping.signal.aborted) {
      const nudged = wake.promise
      try {
        while (await sendBatch(ctx, lanes, network)) if (stopping.signal.aborted) break
      } catch (error) {
        deps.log.error(
          { err: error, network: network.name },
          'payments could not be handed to the lane; they stay waiting',
        )
        await pause(1_000, stopping.signal)
      }
      await Promise.race([nudged, pause(pollMs, stopping.signal)])
    }
  })
  return {
    nudge() {
      wake.resolve()
      wake = Promise.withResolvers<void>()
    },
    async stop() {
      stopping.abort()
      await Promise.all(loops)
    },
  }
}

/** Plans one transaction if there is enough reason to; answers whether to look again at once. */
async function sendBatch(ctx: System, lanes: Lanes, network: Network): Promise<boolean> {
  const { waiting, oldest } = await countWaiting(ctx.db, network.name)
  if (waiting === 0n || oldest === null) return false
  const open = await lanes.openCount(network)
  if (open >= lanes.openMax) return false
  const waitedMs = ctx.clock.now().getTime() - oldest.getTime()
  if (open > 0 && waiting < batchMax && waitedMs < companyMsMax) {
    await pause(20, new AbortController().signal)
    return true
  }
  await lanes.prepare(network)
  const payers = await payersNow(ctx, network)
  return ctx.db.tx((tx) => planBatch(ctx, tx, lanes, { network, payers }))
}

/** The accounts whose payments wait, and those of them that run code of their own now, in lower case. */
interface Payers {
  readonly asked: ReadonlySet<string>
  readonly coded: ReadonlySet<string>
}

/**
 * Asked anew for every batch, since an ordinary account can take on code after its payment was verified (EIP-7702), and the token
 * asks that code whatever the form of the signature: it could burn the gas of everybody in the transaction. Who pays alone is
 * in nobody's company and is not asked about.
 */
async function payersNow(ctx: System, network: Network): Promise<Payers> {
  const payers = await listWaitingPayers(ctx.db, network.name, batchMax)
  const asked = new Set(payers.map((payer) => payer.toLowerCase()))
  const coded = payers.length < 2 ? new Set<string>() : await ctx.chains.on(network).accountsWithCode(payers)
  return { asked, coded }
}

interface Batch {
  readonly network: Network
  readonly payers: Payers
}

async function planBatch(ctx: System, tx: Tx, lanes: Lanes, { network, payers }: Batch): Promise<boolean> {
  const locked = await lockWaiting(tx, network.name, batchMax)
  const now = ctx.clock.now()
  const known = locked.filter(({ payer }) => payers.asked.has(payer.toLowerCase()))
  const payments = company(
    known.filter((payment) => !isLapsing(payment, now)),
    payers.coded,
  )
  if (payments.length === 0) return false
  const call = settlementCall(payments)
  const transactionId = await lanes.plan(tx, { network, ...call, value: 0n, purpose: settlementPurpose })
  await assignTransaction(
    tx,
    payments.map((payment) => payment.id),
    transactionId,
  )
  tx.afterCommit(() => lanes.nudge(network))
  return locked.length > payments.length || locked.length === batchMax
}

/** An authorisation about to end is left to `resolveLapsed`: sent now it would only burn gas. */
function isLapsing({ settlement }: SettlementRow, now: Date): boolean {
  const last = settlement.kind === 'permit2' ? settlement.deadline : settlement.validBefore
  return BigInt(last) * 1000n <= BigInt(now.getTime()) + 2_000n
}

/**
 * Who shares a transaction. Multicall3 cannot bound what one call burns, so a payer whose own code runs goes alone, and so
 * does a payment that a batch left out once: nobody can make a neighbour fail twice. A permit goes alone because its proxy asks who sends it,
 * and because its payer may be a contract.
 */
function company(payments: readonly SettlementRow[], coded: ReadonlySet<string>): SettlementRow[] {
  const isAlone = (payment: SettlementRow): boolean => goesAlone(payment) || coded.has(payment.payer.toLowerCase())
  const first = payments[0]
  if (first === undefined || isAlone(first)) return first === undefined ? [] : [first]
  let gas = 0n
  return payments.filter((payment) => {
    if (isAlone(payment)) return false
    gas += gasOf(payment.settlement)
    return gas <= batchGasMax
  })
}

function goesAlone({ settlement, settleAttempt }: SettlementRow): boolean {
  return settlement.kind === 'permit2' || settlement.signature.kind === 'bytes' || settleAttempt > 0
}

/** What the lane does with a settlement transaction, inside the database transaction that marks it. */
export function settlementHandler(deps: Deps): LaneHandler {
  const ctx = systemCtx(deps)
  return {
    purpose: settlementPurpose,
    async onSent(tx, transaction) {
      await markHash(tx, transaction.id, transaction.hash)
    },
    async onMined(tx, transaction, receipt) {
      const { rest } = await sorted(tx, transaction.id, receipt)
      if (rest.length > 0) await forgetHash(tx, rest)
    },
    async onDisplaced(tx, transaction) {
      const payments = await listInTransaction(tx, transaction.id)
      await markUnresolved(
        tx,
        payments.map((payment) => payment.id),
      )
    },
    async onFinal(tx, transaction, receipt) {
      const { settled, rest } = await sorted(tx, transaction.id, receipt)
      await recordSettled(ctx, tx, settled, receipt.transactionHash)
      if (rest.length > 0) await markUnresolved(tx, rest)
    },
  }
}

/** The payments of a transaction whose money it moved, and the ids of the others. */
async function sorted(
  tx: Tx,
  transactionId: string,
  receipt: Receipt,
): Promise<{ readonly settled: readonly SettlementRow[]; readonly rest: readonly PaymentId[] }> {
  const payments = await listInTransaction(tx, transactionId)
  const isSettled = settledBy(receipt.status === 'success' ? receipt.logs : [])
  const rest = payments.filter((payment) => !isSettled(payment)).map((payment): PaymentId => payment.id)
  return { settled: payments.filter(isSettled), rest }
}

/**
 * Asks the chain about payments that a final transaction did not carry. Nothing is guessed: the nonce's state decides.
 * Running twice is harmless, since every step moves a payment only from the state that it was read in.
 */
const resolveOutcomes: Recurring = {
  name: 'payments.resolve-outcomes',
  everyMs: 1_000,
  run: (ctx) => forEachNetwork(ctx, resolveUnresolved),
}

/** Ends payments whose authorisation lapsed before anybody settled them. Harmless twice, for the same reason. */
const endLapsed: Recurring = {
  name: 'payments.end-lapsed',
  everyMs: 15_000,
  run: (ctx) => forEachNetwork(ctx, resolveLapsed),
}

export const paymentRecurring: readonly Recurring[] = [resolveOutcomes, endLapsed]

async function forEachNetwork(ctx: System, work: (ctx: System, network: Network) => Promise<void>): Promise<void> {
  for (const network of ctx.chains.configured) {
    if (networkByName(network.name)?.settlesEip3009 !== true) continue
    await work(ctx, network).catch((error: unknown) =>
      ctx.log.warn({ err: error, network: network.name }, 'the chain could not be asked; outcomes stay open'),
    )
  }
}

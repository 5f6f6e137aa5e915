import {
  type Address,
  decodeTransferLog,
  encodeTransfer,
  type Network,
  sameAddress,
  tokenBySymbol,
} from '@purser/protocol'
import type { LaneCall, LaneHandler, LaneTransaction, Receipt } from '../../../chain/port.ts'
import { inParallel } from '../../../platform/in-parallel.ts'
import type { RecurringTaskByNetwork } from '../../../platform/recurring-task.ts'
import { mayTake } from '../../../platform/share.ts'
import { systemCtx } from '../../../platform/work/runner.ts'
import { assignReservations } from '../../funds/index.ts'
import type { Ctx, Deps } from '../ports.ts'
import { type End, type EndingCtx, endPlanned, failedTransfer, frozenOnes, recordEnded } from './outcome.ts'
import { isAnyPlanned } from './relay-store.ts'
import { gasOfTempoTransfer } from './sweeps.ts'
import {
  assignTransaction,
  countSent,
  listInTransactions,
  listPlanned,
  lockPlanned,
  markHash,
  markTried,
  type PlannedRow,
} from './tempo-store.ts'
import { type SweepTransferRow, subjectOf } from './transfer-store.ts'

type System = Omit<Ctx, 'tenant'>

/** Most transactions of children in progress on a network, which their owners share, and most attempts at once. */
const sentMax = 200
const atOnce = 8
/** A transaction may need to raise its fee before it is in a block: the sponsor needs this multiple of the current fee. */
const feeMargin = 2n
const attodollarsPerUnit = 10n ** 12n

/**
 * Sweeps on Tempo, whose tokens do not support signed authorizations and whose fees can be sponsored: each child sends its own transaction
 * (0x76) from its lane, and the operator's account sponsors its fee. The transfer was stored before; here it gets its transaction and nonce
 * in one commit, once. Idempotent.
 */
export const sweepOnTempo: RecurringTaskByNetwork<Deps> = {
  name: 'wallets.sweep-on-tempo',
  everyMs: 500,
  networks: ({ chains }) => chains.configured.filter(({ nativeCoin }) => nativeCoin === null),
  isDue: isAnyPlanned,
  runOn: passTempo,
}

async function passTempo(ctx: System, network: Network): Promise<void> {
  const list = { most: sentMax, cursors: ctx.tempoCursors }
  const planned = await ctx.db.tx((tx) => listPlanned(tx, network.name, list), { readsInOrder: true })
  const now = ctx.clock.now()
  const groups = Map.groupBy(planned, ({ validBefore, isScreened }) => (validBefore < now ? 'expired' : isScreened))
  const expired = groups.get('expired') ?? []
  const screened = groups.get(true) ?? []
  // Transfers that wait for screening are written only if they fill the list, so that the next pass lists others.
  const unscreened = planned.length < sentMax ? [] : (groups.get(false) ?? [])
  await markTried(ctx.db, [...expired, ...unscreened])
  for (const transfer of expired) await safely(ctx, transfer, endPlanned(ctx, transfer, 'authorization-expired'))
  if (screened.length > 0) await sendFairly(ctx, network, screened)
}

/** Sends transfers for which their owners have slots and the sponsor has the fees; the others stay due. */
async function sendFairly(ctx: System, network: Network, screened: readonly PlannedRow[]): Promise<void> {
  const sent = await countSent(ctx.db, network.name)
  const fee = await feeToPay(ctx, network)
  const affordable = Math.max(0, Number(fee.affordable) - countOf(sent))
  const fitting = fittingOf(screened, sent)
  if (affordable < fitting.length)
    ctx.log.error({ network: network.name }, 'the sponsor cannot pay the fees of all sweeps; some are delayed')
  const transfers = fitting.slice(0, affordable)
  await markTried(ctx.db, transfers)
  await inParallel(transfers, atOnce, (transfer) =>
    safely(ctx, transfer, send(ctx, network, { transfer, feeToken: fee.token })),
  )
}

function countOf(sent: ReadonlyMap<string, number>): number {
  return [...sent.values()].reduce((sum, own) => sum + own, 0)
}

/** Returns the transfers that get a slot: one of each owner, then the second of each, while the owner has less than its share of the slots. */
export function fittingOf<T extends Pick<PlannedRow, 'shareOwner'>>(
  screened: readonly T[],
  sent: ReadonlyMap<string, number>,
): readonly T[] {
  const turns = new Map<string, number>()
  const dealt = screened.map((transfer) => {
    const turn = turns.get(transfer.shareOwner) ?? 0
    turns.set(transfer.shareOwner, turn + 1)
    return { transfer, turn }
  })
  const owned = new Map(sent)
  let taken = countOf(sent)
  const fitting: T[] = []
  for (const { transfer } of dealt.toSorted((one, other) => one.turn - other.turn)) {
    const own = owned.get(transfer.shareOwner) ?? 0
    if (!mayTake({ own, taken, max: sentMax })) continue
    owned.set(transfer.shareOwner, own + 1)
    taken += 1
    fitting.push(transfer)
  }
  return fitting
}

/** A transfer that fails does not delay later ones; until it expires it is retried, after those that were tried longer ago. */
async function safely(
  ctx: Pick<System, 'log'>,
  { sweepId, childAddressId }: SweepTransferRow,
  step: Promise<void>,
): Promise<void> {
  await step.catch((error: unknown) =>
    ctx.log.warn({ err: error, sweepId, childAddressId }, 'a transfer of a sweep could not continue; retrying'),
  )
}

/** The token in which the sponsor pays fees, and the number of children that its balance covers. */
async function feeToPay(
  ctx: Pick<System, 'chains' | 'settlerAddress'>,
  network: Network,
): Promise<{ token: Address; affordable: bigint }> {
  const token = (tokenBySymbol(network, 'pathUSD') ?? network.tokens[0])?.address
  if (token === undefined) throw new Error(`${network.name} has no token to pay a fee in`)
  const chain = ctx.chains.on(network)
  const [{ maxFee }, [locked = 0n]] = await Promise.all([
    chain.offeredFees(),
    chain.balances([{ token, account: ctx.settlerAddress }]),
  ])
  const cost = (gasOfTempoTransfer * maxFee * feeMargin) / attodollarsPerUnit + 1n
  return { token, affordable: locked / cost }
}

interface Turn {
  readonly transfer: SweepTransferRow
  readonly feeToken: Address
}

async function send(
  ctx: EndingCtx & Pick<Ctx, 'chains' | 'db' | 'lanes'>,
  network: Network,
  { transfer, feeToken }: Turn,
): Promise<void> {
  const refusal = await refusalNow(ctx, network, transfer)
  if (refusal !== undefined) return endPlanned(ctx, transfer, refusal)
  await ctx.lanes.prepare(network, transfer.fromAddress)
  const planned = { network, ...callOf(transfer), ...sponsoredBy(feeToken) }
  const isFrozen = await ctx.db.tx(async (tx) => {
    const locked = await lockPlanned(tx, transfer, 'screened')
    if (locked === undefined) return false
    if ((await frozenOnes(tx, [locked])).size > 0) return true
    const transactionId = await ctx.lanes.plan(tx, locked.fromAddress, planned)
    await assignTransaction(tx, [locked], transactionId)
    await assignReservations(tx, { subjectId: subjectOf(locked), part: 0 }, transactionId)
    tx.afterCommit(() => ctx.lanes.notify(network))
    return false
  })
  if (isFrozen) await endPlanned(ctx, transfer, 'amount-frozen')
}

function callOf({ asset: to, toAddress, rawAmount }: SweepTransferRow): LaneCall {
  return { to, data: encodeTransfer(toAddress, rawAmount), value: 0n }
}

function sponsoredBy(feeToken: Address) {
  return { feeToken, isSponsored: true, gasLimit: gasOfTempoTransfer, purpose: tempoSweepPurpose } as const
}

/** Returns why the latest block would not move the money; the sponsor would pay for a refused transfer. */
async function refusalNow(
  ctx: Pick<System, 'chains'>,
  network: Network,
  transfer: SweepTransferRow,
): Promise<string | undefined> {
  const { asset: token, fromAddress: account, rawAmount } = transfer
  const chain = ctx.chains.on(network)
  const trial = await chain.tryCall({ from: account, ...callOf(transfer) })
  if (trial.ok) return undefined
  const [locked = 0n] = await chain.balances([{ token, account }])
  return locked < rawAmount ? 'insufficient-balance' : 'transfer-refused'
}

/** Name of these transactions in the children's lanes. */
const tempoSweepPurpose = 'wallets.sweep-on-tempo'

/**
 * Handler of a child's lane on Tempo for the transaction of its sweep, inside the database transaction that marks the step. The transaction
 * carries nothing else, so its outcome is the outcome of the transfer; the token's log shows whether the money moved.
 */
export function tempoSweepHandler(deps: Pick<Deps, 'clock' | 'gasPrices' | 'random'>): LaneHandler {
  const ctx = systemCtx(deps)
  return {
    purpose: tempoSweepPurpose,
    async onSent(tx, transactions) {
      for (const { id, hash } of transactions) await markHash(tx, id, hash)
    },
    async onReplaced(tx, transactions) {
      const transfers = await listInTransactions(tx, idsOf(transactions))
      await recordEnded(
        ctx,
        tx,
        transfers.map((transfer) => failedTransfer(transfer, 'nonce-used-elsewhere')),
      )
    },
    async onFinal(tx, mined) {
      const receipts = new Map<string, Receipt>(mined.map(({ transaction, receipt }) => [transaction.id, receipt]))
      const transfers = await listInTransactions(tx, idsOf(mined.map(({ transaction }) => transaction)))
      const ends = transfers.flatMap((transfer) => {
        const receipt = receipts.get(transfer.chainTransactionId)
        return receipt === undefined ? [] : [endOf(transfer, receipt)]
      })
      await recordEnded(ctx, tx, ends)
    },
  }
}

function idsOf(transactions: readonly LaneTransaction[]): readonly string[] {
  return transactions.map(({ id }) => id)
}

function endOf(transfer: SweepTransferRow, receipt: Receipt): End {
  const { sweepId, childAddressId } = transfer
  const wei = receipt.gasUsed * receipt.effectiveGasPrice
  const reason = faultOf(transfer, receipt)
  if (reason !== undefined) return { ...failedTransfer(transfer, reason), wei }
  return { sweepId, childAddressId, status: 'swept', txHash: receipt.transactionHash, reason: null, wei }
}

/** Returns why the money is not at the master according to the block; undefined if it is. */
export function faultOf(
  transfer: Pick<SweepTransferRow, 'asset' | 'fromAddress' | 'toAddress' | 'rawAmount'>,
  receipt: Pick<Receipt, 'status' | 'logs'>,
): 'transfer-failed' | 'not-received' | undefined {
  const { asset, fromAddress, toAddress, rawAmount } = transfer
  if (receipt.status !== 'success') return 'transfer-failed'
  const isMoved = receipt.logs.some((log) => {
    const moved = sameAddress(log.address, asset) ? decodeTransferLog(log) : undefined
    if (moved === undefined || moved.value !== rawAmount) return false
    return sameAddress(moved.from, fromAddress) && sameAddress(moved.to, toAddress)
  })
  return isMoved ? undefined : 'not-received'
}

import {
  formatAmount,
  isFinalAtDepth,
  type Network,
  networkByName,
  requireNetwork,
  sameAddress,
  tokenBySymbol,
  zeroAddress,
} from '@purser/protocol'
import type { Chain, NodeVerdict, Receipt } from '../../chain/port.ts'
import { type AuditEntry, appendAudit } from '../../platform/audit.ts'
import { instantOf } from '../../platform/clock.ts'
import type { ActingCtx, Background } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { publishEvents } from '../../platform/events.ts'
import type { EventId } from '../../platform/ids.ts'
import { type RecurringTaskByNetwork, repeatWhile } from '../../platform/recurring-task.ts'
import {
  endAllowances,
  endReservations,
  keepAllowances,
  markAuthorizationsUsed,
  markAuthorizationUnused,
} from '../funds/index.ts'
import { relays } from '../relayer/index.ts'
import { releasePolicy } from '../wallets/index.ts'
import { gaslessPurpose } from './gasless/store.ts'
import {
  type DueTransfer,
  isAnyAwaitingFinality,
  listAwaitedBlocks,
  listAwaiting,
  listToFinalize,
  lockSettled,
  markFinal,
  markReported,
  markSettled,
  markTransfersEnded,
  markUnsettled,
  postponeFinality,
  type Settled,
  type TransferEnd,
} from './outcome-store.ts'
import { endAllowanceTurns } from './partner-store.ts'
import { paymentPurpose } from './paying/store.ts'
import type { Ctx, Deps } from './ports.ts'
import { lockTransfers, type TransferId, type TransferRow } from './store.ts'

/** Context for ending a transfer: a worker's or the operator's. */
export type EndingCtx = ActingCtx & Pick<Ctx, 'db'>

/** Ends a transfer: confirmed, or failed with this reason. Publishes an event if the response reported, or will report, another state. */
export async function end(ctx: EndingCtx, tx: Tx, transferId: TransferId, fault: string | undefined): Promise<void> {
  await endAll(ctx, tx, [{ transferId, fault }])
}

/** Ends several transfers, as `end` does. Returns those that this call ended. */
export async function endAll(ctx: EndingCtx, tx: Tx, ends: readonly TransferEnd[]): Promise<readonly TransferRow[]> {
  if (ends.length === 0) return []
  const now = ctx.clock.now()
  const ended = await markTransfersEnded(tx, ends, now)
  const byThis = new Set(ended.map((row) => row.id))
  const others = ends.map(({ transferId }) => transferId).filter((transferId) => !byThis.has(transferId))
  const endedBefore = others.length === 0 ? [] : await lockTransfers(tx, others)
  // Every step of a confirmed transfer has a nonce, which ends its reservation; a gasless transfer has no steps.
  const open = ended.filter(({ hasSteps, status }) => status !== 'confirmed' || !hasSteps)
  await keepAllowances(
    tx,
    ended.flatMap(({ id: subjectId, isRevokeDue, approvedBy: transactionId }) =>
      isRevokeDue && transactionId !== null ? [{ subjectId, transactionId }] : [],
    ),
  )
  await endReservations(
    tx,
    open.map((row) => ({ subjectId: row.id, isBack: isInWallet(row) })),
  )
  const settled = ended.filter(({ partner, isRevokeDue }) => partner !== null && !isRevokeDue).map((row) => row.id)
  if (settled.length > 0) {
    await endAllowanceTurns(tx, settled)
    await endAllowances(tx, settled)
  }
  const all = [...ended, ...endedBefore].toSorted(byId)
  for (const row of all) if (isInWallet(row)) await releasePolicy(tx, row, row.id, now)
  await publishOutcomes(ctx, tx, all.filter(isToBeReported))
  // A withdrawal has its own audit records for its transfer.
  for (const row of ended) if (row.purpose !== 'withdrawal') appendAudit({ ...ctx, tenant: row }, tx, recordOf(row))
  return ended
}

function byId({ id: left }: TransferRow, { id: right }: TransferRow): number {
  return left < right ? -1 : Number(left > right)
}

function recordOf(transfer: TransferRow): AuditEntry {
  const { id: target, walletId: from, status, reason, txHash, destinationTxHash, refundTxHash } = transfer
  const how = Object.entries({ reason, txHash, destinationTxHash, refundTxHash }).filter(([, value]) => value !== null)
  return { action: `transfers.${status}`, target, details: { from, ...Object.fromEntries(how) } }
}

/**
 * Whether a failed transfer's money is in the wallet: it never left, or is back. Money that a token, Tempo's guard or a partner took and did not
 * deliver has left it, and still counts.
 */
export function isInWallet({ status, reason }: Pick<TransferRow, 'status' | 'reason'>): boolean {
  return status === 'failed' && reason !== 'not-received'
}

/** Whether an event is due. A bridge transfer whose money has left always needs one: its response reported at most that it is in progress. */
function isToBeReported(transfer: TransferRow): boolean {
  if (transfer.route === 'partner-bridge' && transfer.leftAt !== null) return true
  return transfer.reportedState !== null && !isAsReported(transfer)
}

/** Whether the response already reported this end. A reported block may be reorganized, and the next block may say something else. */
function isAsReported({ reportedState, status }: TransferRow): boolean {
  return reportedState === (status === 'confirmed' ? 'confirmed' : 'reverted')
}

/** Publishes the outcomes of transfers, each once. The caller has locked their rows. */
export async function publishOutcomes(ctx: EndingCtx, tx: Tx, transfers: readonly TransferRow[]): Promise<void> {
  const due = transfers.filter(({ eventId, endedAt }) => eventId === null && endedAt !== null)
  const reported: { readonly transferId: TransferId; readonly eventId: EventId }[] = []
  for (const some of Map.groupBy(due, outcomeOf).values()) reported.push(...(await publishAll(ctx, tx, some)))
  await markReported(tx, reported)
}

/** Transfers with one of these belong to one tenant and get events of one type. */
function outcomeOf({ organisationId, environment, status }: TransferRow): string {
  return `${organisationId} ${environment} ${status}`
}

async function publishAll(ctx: EndingCtx, tx: Tx, transfers: readonly TransferRow[]) {
  const [tenant] = transfers
  if (tenant === undefined) return []
  const own = { ...ctx, tenant }
  const eventIds =
    tenant.status === 'confirmed'
      ? await publishEvents(own, tx, 'transfer.completed', transfers.map(completed))
      : await publishEvents(own, tx, 'transfer.failed', transfers.map(failed))
  return transfers.flatMap(({ id: transferId }, index) => {
    const eventId = eventIds[index]
    return eventId === undefined ? [] : [{ transferId, eventId }]
  })
}

function completed(transfer: TransferRow) {
  const confirmedAt = transfer.confirmedAt ?? transfer.endedAt
  if (transfer.txHash === null || confirmedAt === null) throw new Error('a confirmed transfer has a transaction')
  return {
    transactionId: transfer.id,
    walletId: transfer.walletId,
    route: transfer.route,
    fromChain: transfer.fromChain,
    toChain: transfer.toChain,
    amount: formatAmount(transfer.rawAmount, transfer.decimals),
    fromToken: transfer.fromToken,
    toToken: transfer.toToken,
    ...arrivedOf(transfer),
    txHash: transfer.txHash,
    confirmedAt: confirmedAt.toISOString(),
  }
}

function failed(transfer: TransferRow) {
  const { id: transactionId, walletId, route, reason, refundTxHash, refundedAt } = transfer
  if (reason === null) throw new Error('a failed transfer has a reason')
  return { transactionId, walletId, route, reason, refundTxHash, refundedAt: refundedAt?.toISOString() ?? null }
}

/** The expected or received amount, as it is shown. */
export interface Arrived {
  readonly toAmount: string
  /** The received token if it differs from the requested one: its symbol, or its address if the service does not know it. */
  readonly receivedToken: string | null
  readonly destinationTxHash: string | null
}

/** Amounts of a token that the service does not know are in its smallest unit. */
export function arrivedOf(row: TransferRow): Arrived {
  const { receivedToken, destinationTxHash, rawReceived } = row
  const other = receivedToken === null ? undefined : coinAt(row.toNetwork, receivedToken)
  const decimals = receivedToken === null ? (row.toDecimals ?? row.decimals) : (other?.decimals ?? 0)
  const raw = rawReceived ?? row.rawOut ?? row.rawAmount
  return {
    toAmount: formatAmount(raw, decimals),
    receivedToken: other?.symbol ?? receivedToken,
    destinationTxHash,
  }
}

function coinAt(networkName: string, address: `0x${string}`) {
  const network = networkByName(networkName)
  if (sameAddress(address, zeroAddress)) return network?.nativeCoin ?? undefined
  return network?.tokens.find((token) => sameAddress(token.address, address))
}

/** Whether only the partner can report the arrival: on another chain, and for a coin, whose transfers have no logs. */
export function isFollowed({ route, toNetwork, toToken }: TransferRow): boolean {
  if (route === 'partner-bridge') return true
  const token = tokenBySymbol(requireNetwork(toNetwork), toToken)
  return route === 'partner-swap' && (token === undefined || sameAddress(token.address, zeroAddress))
}

type Work = Omit<Ctx, 'tenant'>

const atOnce = 200
/** Most batches of a run, for which a process that stops waits, and most blocks whose hashes it compares with the chain's. */
const batchesMax = 5
const comparedMax = 16
const pollMsMin = 2_000
const pollMsMax = 12_000

/** Time of the next check of a block that too few nodes report as final: two block times, within bounds. */
function nextFinalityPoll({ clock }: Pick<Work, 'clock'>, { blockTimeMs }: Network): Date {
  return instantOf(clock.now().getTime() + Math.min(pollMsMax, Math.max(pollMsMin, 2 * blockTimeMs)))
}

/**
 * Ends transfers with an outcome at the payment depth if that depth is final; otherwise they stay open until their block is final. Returns at
 * least those that are now reported.
 */
export function endOrAwait(
  ctx: ActingCtx & Pick<Work, 'db'>,
  tx: Tx,
  network: Network,
  settled: readonly Settled[],
): Promise<readonly TransferRow[]> {
  return isFinalAtDepth(network) ? endAll(ctx, tx, settled) : awaitFinality(ctx, tx, settled)
}

/** Keeps transfers with an outcome at the payment depth open until their block is final. Returns those that are now reported. */
export async function awaitFinality(
  ctx: Pick<Work, 'clock'>,
  tx: Tx,
  settled: readonly Settled[],
): Promise<readonly TransferRow[]> {
  const now = ctx.clock.now()
  await markAuthorizationsUsed(tx, authorizedOf(settled), now)
  return markSettled(tx, settled, now)
}

/** Transfers that an authorization moved: they have no transaction of their own. */
function authorizedOf(settled: readonly Settled[]): readonly TransferId[] {
  return settled.flatMap(({ transferId, transactionId }) => (transactionId === undefined ? [transferId] : []))
}

/**
 * Ends transfers whose block is final, and reopens those whose block is gone: the same bytes are sent again, or a new block decides.
 * Idempotent: each transfer is decided under its row lock, while it still waits for the checked block.
 *
 * A run reads once which block is final, and then only the transfers up to it, each once. Of the blocks above it, it compares some with the
 * chain's in turn, each once for all of its transfers: the number of calls to nodes does not grow with the transfers that wait.
 */
export const finalizeTransfers: RecurringTaskByNetwork<Deps> = {
  name: 'transfers.finalize',
  everyMs: 2_000,
  networks: ({ chains }) => awaitedOf(chains),
  isDue: (networks) => isAnyAwaitingFinality(networks),
  runOn: finalizeOn,
}

function awaitedOf({ configured }: Work['chains']) {
  return configured.filter((network) => !isFinalAtDepth(network))
}

type Finalizing = ActingCtx & Pick<Work & Background, 'awaitedCursors' | 'chains' | 'db' | 'lanes' | 'log' | 'stopping'>

async function finalizeOn(ctx: Finalizing, network: Network): Promise<void> {
  const final = await ctx.chains.on(network).blocks.finalBlock()
  if (final === undefined) return
  const finalizeBatch = async () => {
    const due = await listToFinalize(ctx.db, network.name, { final, now: ctx.clock.now(), limit: atOnce })
    // Postponed before anything can fail, so that failing ones do not delay others.
    const ids = due.map(({ transferId }) => transferId)
    await postponeFinality(ctx.db, ids, nextFinalityPoll(ctx, network))
    await concludeFinal(ctx, network, due)
    return due.length >= atOnce
  }
  await repeatWhile(ctx, finalizeBatch, batchesMax)
  const replaced = await listReplaced(ctx, network, final)
  await conclude(ctx, network, replaced, await confirmBlocks(ctx.chains.on(network), replaced))
}

/** Transfers that wait for a block above the final one that the chain has replaced. Each call compares the next blocks; the first ones follow the last. */
async function listReplaced(
  { db, chains, awaitedCursors: cursors }: Pick<Work, 'awaitedCursors' | 'chains' | 'db'>,
  { name }: Network,
  final: bigint,
): Promise<readonly DueTransfer[]> {
  const cursor = cursors.get(name) ?? 0n
  const above = cursor > final ? cursor : final
  const blocks = await listAwaitedBlocks(db, name, { above, limit: comparedMax })
  const last = blocks.length < comparedMax ? undefined : blocks.at(-1)
  // The last one again: another block of its height may follow it.
  cursors.set(name, last === undefined ? 0n : last.number - 1n)
  const verdicts = await chains.on(requireNetwork(name)).blocks.areReplaced(blocks)
  const replaced = blocks.filter((_, index) => verdicts[index] === 'yes')
  return replaced.length === 0 ? [] : listAwaiting(db, name, replaced, atOnce)
}

/**
 * The nodes vote on the blocks, in which the transactions were when they were settled: a receipt that one node invents decides nothing. Where an earlier
 * version did not store the number of a block, the receipt is read.
 */
async function concludeFinal(ctx: Finalizing, network: Network, due: readonly DueTransfer[]): Promise<void> {
  const chain = ctx.chains.on(network)
  const placed = due.flatMap((one) => (one.blockNumber === null ? [] : [{ ...one, number: one.blockNumber }]))
  const others = due.filter(({ blockNumber }) => blockNumber === null)
  const blocks = placed.map(({ number, blockHash: hash }) => ({ number, hash }))
  await conclude(ctx, network, placed, await chain.blocks.areFinal(blocks))
  await conclude(ctx, network, others, await confirmBlocks(chain, others))
}

/** Ends those with the verdict `yes`, and reopens those with `no`. */
async function conclude(
  ctx: Finalizing,
  network: Network,
  due: readonly DueTransfer[],
  verdicts: readonly NodeVerdict[],
): Promise<void> {
  const of = (wanted: NodeVerdict) => due.filter((_, index) => verdicts[index] === wanted)
  const final = of('yes')
  if (final.length > 0) await ctx.db.tx((tx) => endFinal(ctx, tx, final))
  for (const gone of of('no')) await ctx.db.tx((tx) => reopen(ctx, tx, network, gone))
}

/**
 * `yes`: its block is final. `no`: the transaction is in no block or in another one, which the lane must evaluate. Where the nodes deny the
 * receipt of the block in which the transfer was settled, one node may have invented it, so the transfer stays undecided.
 */
async function confirmBlocks(chain: Chain, due: readonly DueTransfer[]): Promise<readonly NodeVerdict[]> {
  if (due.length === 0) return []
  const { receipts } = await chain.lookUp(due.map(({ hash }) => hash))
  const lookups = due.map((one, index) => ({ one, receipt: receipts[index] }))
  const inBlock = lookups.flatMap(({ one, receipt }) =>
    typeof receipt === 'object' && receipt.blockHash === one.blockHash ? [{ one, receipt }] : [],
  )
  const receiptsInBlock = inBlock.map(({ receipt }) => receipt)
  const verdicts = await chain.confirmReceipts(receiptsInBlock, chain.network.depositFinality)
  const found = new Map(
    inBlock.map(({ one }, index): [DueTransfer, NodeVerdict] => [one, verdicts[index] === 'yes' ? 'yes' : 'undecided']),
  )
  for (const { one, receipt } of lookups)
    if (!found.has(one)) found.set(one, receipt === 'unread' ? 'undecided' : await isElsewhere(chain, one, receipt))
  return due.map((one) => found.get(one) ?? 'undecided')
}

async function isElsewhere(chain: Chain, { hash }: DueTransfer, receipt: Receipt | undefined): Promise<NodeVerdict> {
  if (receipt === undefined) return (await chain.isInNoBlock([hash])) === 'yes' ? 'no' : 'undecided'
  const [isInAnother] = await chain.confirmReceipts([receipt], { depth: 1 })
  return isInAnother === 'yes' ? 'no' : 'undecided'
}

/** Partner transfers are followed until delivery. */
async function endFinal(ctx: ActingCtx & Pick<Work, 'db'>, tx: Tx, due: readonly DueTransfer[]): Promise<void> {
  const waiting = await lockSettled(tx, due)
  const rows = new Map((await lockTransfers(tx, waiting)).map((row) => [row.id, row]))
  const ends = due.flatMap(({ transferId, fault }) => {
    const row = rows.get(transferId)
    return row === undefined || isLeftToPartner(row, fault) ? [] : [{ transferId, fault: fault ?? undefined }]
  })
  await markFinal(tx, waiting)
  await endAll(ctx, tx, ends)
}

function isLeftToPartner(row: TransferRow, fault: string | null): boolean {
  return row.endedAt !== null || (fault === null && isFollowed(row))
}

async function reopen(ctx: Pick<Work, 'lanes' | 'log'>, tx: Tx, network: Network, due: DueTransfer): Promise<void> {
  if ((await lockSettled(tx, [due])).length === 0) return
  const { transferId, transactionId, hash } = due
  const details = { transferId, network: network.name, hash }
  ctx.log.error(details, 'the block of a confirmed transfer is gone; the transfer is pending again')
  await markUnsettled(tx, due)
  if (transactionId === null) {
    await markAuthorizationUnused(tx, transferId)
    return reopenRelays(tx, transferId)
  }
  await ctx.lanes.reopen(tx, transactionId)
  tx.afterCommit(() => ctx.lanes.notify(network))
}

/** Reopens the signature of a transfer: the settler sends that of a gasless one, and the payee that of a payment. */
async function reopenRelays(tx: Tx, transferId: TransferId): Promise<void> {
  await relays.reopen(tx, gaslessPurpose, transferId)
  await relays.watchAgain(tx, paymentPurpose, transferId)
}

import { formatAmount, networkByName, sameAddress, zeroAddress } from '@purser/protocol'
import { type AuditEntry, appendAudit } from '../../platform/audit.ts'
import type { Tx } from '../../platform/db/db.ts'
import { publishEvent } from '../../platform/events.ts'
import { endReservations } from '../funds/index.ts'
import { releasePolicy, settleGas } from '../wallets/index.ts'
import { endUnits, listGasCosts, markEnded, markReported, type TransferEnd } from './outcome-store.ts'
import type { Ctx } from './ports.ts'
import { lockTransfers, type TransferId, type TransferRow } from './store.ts'

/** Context for ending a transfer: a worker's or the operator's. */
export type EndingCtx = Pick<Ctx, 'db' | 'clock' | 'random' | 'actor' | 'requestId' | 'eventsCommitted'>

/** Ends a transfer: confirmed, or failed with this reason. Publishes an event if the response reported, or will report, another state. */
export async function end(ctx: EndingCtx, tx: Tx, transferId: TransferId, fault: string | undefined): Promise<void> {
  await endAll(ctx, tx, [{ transferId, fault }])
}

/** Ends several transfers, as `end` does. */
export async function endAll(ctx: EndingCtx, tx: Tx, ends: readonly TransferEnd[]): Promise<void> {
  if (ends.length === 0) return
  const now = ctx.clock.now()
  const ended = await markEnded(tx, ends, now)
  const byThis = new Set(ended.map((row) => row.id))
  const others = ends.map(({ transferId }) => transferId).filter((transferId) => !byThis.has(transferId))
  const endedBefore = others.length === 0 ? [] : await lockTransfers(tx, others)
  const costs = await listGasCosts(
    tx,
    ended.map((row) => row.id),
  )
  await settleGas(tx, realGasOf(ended, costs))
  // Every step of a confirmed transfer has a nonce, which ends its reservation; a gasless transfer has no steps.
  const open = ended.filter(({ id, status }) => status !== 'confirmed' || !costs.has(id))
  await endReservations(
    tx,
    open.map((row) => ({ subjectId: row.id, isBack: isBack(row) })),
  )
  await endUnits(
    tx,
    ended.filter(({ partner, isRevokeDue }) => partner !== null && !isRevokeDue).map((row) => row.id),
  )
  for (const row of [...ended, ...endedBefore].toSorted(byId)) {
    if (isBack(row)) await releasePolicy(tx, row, row.id, now)
    if (isToBeReported(row)) await publishOutcome(ctx, tx, row)
  }
  // A withdrawal has its own audit records for its transfer.
  for (const row of ended) if (row.purpose !== 'withdrawal') appendAudit({ ...ctx, tenant: row }, tx, recordOf(row))
}

/** Actual gas in 1e-18 of the coin; it replaces the maximum that counted against the wallets' policies so far. */
function realGasOf(ended: readonly TransferRow[], costs: ReadonlyMap<TransferId, bigint>) {
  return ended.flatMap((row) => {
    const raw = costs.get(row.id)
    return raw === undefined ? [] : [{ subjectId: row.id, attoAmount: raw * 10n ** BigInt(18 - gasDecimalsOf(row)) }]
  })
}

/** Coins have 18 decimals; on Tempo the token that moves pays for the gas. */
function gasDecimalsOf({ fromNetwork, decimals }: TransferRow): number {
  return networkByName(fromNetwork)?.nativeCoin === null ? decimals : 18
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
 * Whether the money stayed in the wallet. Money that a token, Tempo's guard or a partner took and did not deliver has left it, and still
 * counts.
 */
export function isBack({ status, reason }: Pick<TransferRow, 'status' | 'reason'>): boolean {
  return status === 'failed' && reason !== 'not-received'
}

/** Whether an event is due. A bridge transfer whose money has left always needs one: its response said at most that it is in progress. */
function isToBeReported(transfer: TransferRow): boolean {
  if (transfer.route === 'partner-bridge' && transfer.leftAt !== null) return true
  return transfer.answered !== null && !isAsReported(transfer)
}

/** Whether the response already reported this end. A reported block may be reorganized, and the next block may say something else. */
function isAsReported({ answered, status }: TransferRow): boolean {
  return answered === (status === 'confirmed' ? 'confirmed' : 'reverted')
}

/** Publishes the outcome of a transfer, once. The caller has locked its row. */
export async function publishOutcome(ctx: EndingCtx, tx: Tx, transfer: TransferRow): Promise<void> {
  const { endedAt } = transfer
  if (transfer.eventId !== null || endedAt === null) return
  const own = { ...ctx, tenant: transfer }
  const eventId =
    transfer.status === 'confirmed'
      ? await publishEvent(own, tx, 'transfer.completed', completed(transfer, endedAt))
      : await publishEvent(own, tx, 'transfer.failed', failed(transfer))
  await markReported(tx, transfer.id, eventId)
}

function completed(transfer: TransferRow, endedAt: Date) {
  if (transfer.txHash === null) throw new Error('a confirmed transfer has a transaction')

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
    confirmedAt: (transfer.confirmedAt ?? endedAt).toISOString(),
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

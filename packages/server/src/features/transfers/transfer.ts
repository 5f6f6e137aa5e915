import { formatAmount, resolveNetwork } from '@purser/protocol'
import type { z } from 'zod'
import { batch } from '../../platform/db/batch.ts'
import { type Db, isDeadlock, type Tx } from '../../platform/db/db.ts'
import { id } from '../../platform/ids.ts'
import { type Page, Reply } from '../../platform/operation.ts'
import { openCursor, pageOf } from '../../platform/wire.ts'
import { pause } from '../../platform/work/loop.ts'
import { type ApprovalState, approvalStates } from '../approvals/index.ts'
import { refuseEndedCaller } from '../callers/index.ts'
import { retryOnContention } from '../funds/index.ts'
import { keepRefusal, type PolicyOperation, underPolicy } from '../wallets/index.ts'
import { arrivedOf } from './ending.ts'
import { fail } from './errors.ts'
import { type ReportedState, storeReportedStates } from './outcome-store.ts'
import { planTransfer } from './plan.ts'
import type { Ctx, Intent, OutcomeWaiters, RecordedTransfer, RefundNote, TransferPlan, TransferPorts } from './ports.ts'
import { RejectedIntents, storeTransfers } from './record.ts'
import type { NewTransfer, Transfer, TransferListQuery } from './schema.ts'
import { findOwnTransfer, listDecided, listTransfers, type TransferId, type TransferRow } from './store.ts'

/**
 * Moves money from a managed wallet, once. The intent, its first nonce and the Idempotency-Key commit together before anything is signed;
 * from then on the lane executes it even if this process dies. Waits for a block for a limited time, and returns `pending` if none came: an
 * event then reports the outcome. One that needs an approval gets 202 at once.
 */
export async function createTransfer(ctx: Ctx, request: NewTransfer): Promise<Transfer | Reply> {
  const kind = { operation: 'transfer', action: 'transfers.create' } as const
  const { transferId, isForApproval } = await makeTransfer(ctx, request, kind)
  return respond(ctx, transferId, isForApproval ? 0 : ctx.transferWaitMs)
}

/** The transfer's operation for the spend policy, and its action in the audit log. */
export interface TransferKind {
  readonly operation: PolicyOperation
  readonly action: string
}

/**
 * Creates a transfer without waiting for a block: the response says that it is in progress, so an event reports the outcome in any case.
 */
export async function queueTransfer(ctx: Ctx, request: NewTransfer, kind: TransferKind): Promise<TransferId> {
  return (await makeTransfer(ctx, request, { ...kind, reportedState: 'pending' })).transferId
}

async function makeTransfer(
  ctx: Ctx,
  request: NewTransfer,
  { operation, action, reportedState }: TransferKind & { readonly reportedState?: ReportedState },
): Promise<RecordedTransfer> {
  return retryOnContention(ctx, async () => {
    const plan = await planTransfer(ctx, request)
    await prepareTransfer(ctx, plan)
    const intent = { ctx, request, plan, purpose: 'transfer', operation, action, reportedState } as const
    return ctx.recordTransfer(intent).catch(async (error: unknown) => {
      await keepRefusal(ctx, error)
      throw error
    })
  })
}

/** A row of another feature that is written in the transaction of its transfer. */
export interface Attached {
  /** Runs before anything of the transfer is locked or written. */
  readonly lock: (tx: Tx) => Promise<void>
  /** Runs last in the transaction, after the transfer is stored. */
  readonly write: (tx: Tx, transferId: TransferId) => Promise<void>
  /** The purpose of the transfer, shown to the person who approves it. */
  readonly refund: RefundNote
}

/**
 * Creates a transfer together with another feature's row: both are stored or neither is. It waits for no block; an event reports the end.
 */
export function attachTransfer(ctx: Ctx, request: NewTransfer, { lock, write, refund }: Attached): Promise<void> {
  return retryOnContention(ctx, async () => {
    const plan = await planTransfer(ctx, request)
    await prepareTransfer(ctx, plan)
    const intent = {
      ctx,
      request,
      plan,
      purpose: 'transfer',
      operation: 'transfer',
      refund,
      reportedState: 'pending',
    } as const
    await underPolicy(ctx, async (tx) => {
      await lock(tx)
      await write(tx, await storeOne(tx, intent))
      await refuseEndedCaller(ctx, tx)
    })
  })
}

/**
 * Reads from the chain the first nonces of those senders for which no nonce is stored yet. Call it before
 * `storeTransfer`, outside any transaction.
 */
export async function prepareTransfer(ctx: Pick<Ctx, 'lanes'>, plan: TransferPlan): Promise<void> {
  for (const { sender } of plan.steps) await ctx.lanes.prepare(plan.network, sender)
}

/** Stores the planned transfer of a withdrawal in the caller's transaction, as `recordTransfer` does for a caller's own. */
export async function storeTransfer(
  ctx: Ctx,
  tx: Tx,
  { request, plan }: { readonly request: NewTransfer; readonly plan: TransferPlan },
): Promise<TransferId> {
  return storeOne(tx, { ctx, request, plan, purpose: 'withdrawal', operation: 'transfer', reportedState: undefined })
}

/** Stores one transfer in the caller's transaction; throws its refusal. */
export async function storeOne(tx: Tx, intent: Intent): Promise<TransferId> {
  const [outcome] = await storeTransfers(tx, [intent]).catch((error: unknown) => {
    throw error instanceof RejectedIntents ? (error.causes.get(intent) ?? error) : error
  })
  if (outcome === undefined || outcome instanceof Error) throw outcome ?? new Error('a transfer was not stored')
  return outcome.transferId
}

/**
 * The present state of a transfer, for a repeated request whose first response was never stored. It waits for what is left of the first
 * wait, so that a caller who gives up sooner gets a response to a repeat.
 */
export async function transferState(
  ctx: Pick<Ctx, 'clock' | 'db' | 'outcomeWaiters' | 'reportState' | 'tenant' | 'transferWaitMs'>,
  repeatedId: string,
): Promise<Transfer | Reply> {
  const transferId = id('wtx').parse(repeatedId)
  const row = await findOwnTransfer(ctx.db, ctx.tenant, transferId)
  const waitedMs = ctx.clock.now().getTime() - (row?.acceptedAt.getTime() ?? 0)
  return respond(ctx, transferId, Math.min(Math.max(ctx.transferWaitMs - waitedMs, 0), ctx.transferWaitMs))
}

async function respond(
  ctx: Pick<Ctx, 'db' | 'outcomeWaiters' | 'reportState' | 'tenant'>,
  transferId: TransferId,
  waitMs: number,
): Promise<Transfer | Reply> {
  const reported = await ctx.outcomeWaiters.wait(transferId, waitMs)
  const row = reported ?? (await ctx.reportState(transferId))
  if (row.approvalId !== null) return respondWaiting(ctx, row)
  if (row.reason !== null && !isOnItsWay(row))
    throw fail('transfer-reverted', { transferId, txHash: row.txHash, reason: row.reason })
  return shown(row, null)
}

/** 202 while the transfer waits for its approval, so that a repeat with its Idempotency-Key returns the later state. */
async function respondWaiting(ctx: Pick<Ctx, 'db' | 'tenant'>, row: TransferRow): Promise<Transfer | Reply> {
  const transfer = await shownOne(ctx, row)
  return transfer.approval?.status === 'waiting' ? new Reply(202, transfer) : transfer
}

/** Whether a bridge transfer has left. A bridge takes minutes, so the response is sent as soon as a block has its first half. */
function isOnItsWay({ route, leftAt }: TransferRow): boolean {
  return route === 'partner-bridge' && leftAt !== null
}

export async function getTransfer(ctx: Pick<Ctx, 'db' | 'tenant'>, transferId: TransferId): Promise<Transfer> {
  const row = await findOwnTransfer(ctx.db, ctx.tenant, transferId)
  if (row === undefined) throw fail('transfer-not-found')
  return shownOne(ctx, row)
}

export async function pageOfTransfers(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  query: z.output<typeof TransferListQuery>,
): Promise<Page<Transfer>> {
  const { limit, cursor, fromWalletId, ...filters } = query
  const wanted = { ...filters, walletId: fromWalletId }
  const rows = await listTransfers(ctx.db, ctx.tenant, wanted, { limit, after: openCursor(cursor) })
  const page = pageOf(rows, limit, (row) => row.id)
  const approvals = await approvalStates(ctx, page.items)
  return { ...page, items: page.items.map((row) => shown(row, approvals.get(row.approvalId) ?? null)) }
}

async function shownOne(ctx: Pick<Ctx, 'db' | 'tenant'>, row: TransferRow): Promise<Transfer> {
  return shown(row, (await approvalStates(ctx, [row])).get(row.approvalId) ?? null)
}

export function shown(row: TransferRow, approval: ApprovalState | null): Transfer {
  const { feeSymbol, feeDecimals } = coinsOf(row)
  const amount = formatAmount(row.rawAmount, row.decimals)
  return {
    id: row.id,
    fromWalletId: row.walletId,
    toAddress: row.toAddress,
    txHash: row.txHash,
    fromChain: row.fromChain,
    toChain: row.toChain,
    fromToken: row.fromToken,
    toToken: row.toToken,
    amount,
    ...arrivedOf(row),
    minToAmount: row.rawOutMin === null ? amount : formatAmount(row.rawOutMin, row.toDecimals ?? row.decimals),
    feeAmount: formatAmount(row.rawFee, feeDecimals),
    feeToken: feeSymbol,
    route: row.route,
    routeReason: row.routeReason,
    status: row.status,
    reason: row.status === 'failed' ? row.reason : null,
    refundTxHash: row.refundTxHash,
    refundedAt: row.refundedAt,
    reference: row.reference,
    resource: row.resource,
    metadata: row.metadata,
    approval,
    createdAt: row.createdAt,
    confirmedAt: row.confirmedAt,
  }
}

/** The coin that a stored transfer moves, and the one that its gas is paid in. */
function coinsOf(row: TransferRow): { readonly feeSymbol: string; readonly feeDecimals: number } {
  const nativeCoin = resolveNetwork(row.fromChain, row.environment)?.nativeCoin ?? null
  return nativeCoin === null
    ? { feeSymbol: row.fromToken, feeDecimals: row.decimals }
    : { feeSymbol: nativeCoin.symbol, feeDecimals: nativeCoin.decimals }
}

/** Milliseconds within which an outcome is found that another process stored. Those of this process resolve their waits themselves. */
const pollMs = 100

/** One query, repeated while anyone waits, serves all waiters. */
export class TransferWaiters implements OutcomeWaiters {
  readonly #db: Db
  readonly #waiting = new Map<TransferId, Set<(reported?: TransferRow) => void>>()
  #polling = false
  #woken = Promise.withResolvers<void>()

  constructor(db: Db) {
    this.#db = db
  }

  async wait(transferId: TransferId, waitMs: number): Promise<TransferRow | undefined> {
    if (waitMs <= 0) return undefined
    const { promise, resolve } = Promise.withResolvers<TransferRow | undefined>()
    const waiters = this.#waiting.get(transferId) ?? new Set()
    this.#waiting.set(transferId, waiters.add(resolve))
    const timer = setTimeout(resolve, waitMs)
    void this.#poll()
    const reported = await promise
    clearTimeout(timer)
    waiters.delete(resolve)
    if (waiters.size === 0 && this.#waiting.get(transferId) === waiters) this.#waiting.delete(transferId)
    return reported
  }

  isAwaited(transferId: TransferId): boolean {
    return this.#waiting.has(transferId)
  }

  report(transfers: readonly TransferRow[]): void {
    for (const transfer of transfers) this.#resolve(transfer.id, transfer)
  }

  wake(): void {
    this.#woken.resolve()
  }

  resolve(transferIds: readonly TransferId[]): void {
    for (const transferId of transferIds) this.#resolve(transferId)
  }

  #resolve(transferId: TransferId, reported?: TransferRow): void {
    for (const resolve of this.#waiting.get(transferId) ?? []) resolve(reported)
    this.#waiting.delete(transferId)
  }

  async #untilWoken(): Promise<void> {
    const waiting = new AbortController()
    await Promise.race([this.#woken.promise, pause(pollMs, waiting.signal)])
    waiting.abort()
    this.#woken = Promise.withResolvers()
  }

  /** Polls while anyone waits. A failed query is followed by the next; a waiter that times out gets the state from the row. */
  async #poll(): Promise<void> {
    if (this.#polling) return
    this.#polling = true
    while (this.#waiting.size > 0) {
      await this.#untilWoken()
      const decided = await listDecided(this.#db, [...this.#waiting.keys()]).catch(() => [])
      this.resolve(decided)
    }
    this.#polling = false
  }
}

/**
 * Creates `reportState`. If the shared transaction deadlocks with another one, each transfer is retried by itself: the caller of a transfer
 * in progress must not get an error.
 */
export function createReportState(db: Db): TransferPorts['reportState'] {
  return batch<TransferId, TransferRow>({ itemsMax: 64, batchesMax: 2 }, (transferIds) => reportStates(db, transferIds))
}

async function reportStates(db: Db, transferIds: readonly TransferId[]): Promise<readonly TransferRow[]> {
  try {
    return await reportBatch(db, transferIds)
  } catch (error) {
    if (transferIds.length === 1 || !isDeadlock(error)) throw error
    return (await Promise.all(transferIds.map((transferId) => reportBatch(db, [transferId])))).flat()
  }
}

async function reportBatch(db: Db, transferIds: readonly TransferId[]): Promise<TransferRow[]> {
  const byId = new Map((await storeReportedStates(db, transferIds)).map((row) => [row.id, row]))
  return transferIds.map((transferId) => {
    const row = byId.get(transferId)
    if (row === undefined) throw new Error('a response for a transfer that does not exist')
    return row
  })
}

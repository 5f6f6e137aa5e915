import { formatAmount } from '@purser/protocol'
import type { z } from 'zod'
import type { Ctx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { id } from '../../platform/ids.ts'
import type { Page } from '../../platform/operation.ts'
import { openCursor, pageOf } from '../../platform/wire.ts'
import { retryOnContention } from '../funds/index.ts'
import { keepRefusal, type PolicyOperation, underPolicy } from '../wallets/index.ts'
import { answeredState } from './answering.ts'
import { arrivedOf } from './arrived.ts'
import { fail } from './errors.ts'
import type { Answered } from './outcome-store.ts'
import { coinsOf, planTransfer, type TransferPlan } from './plan.ts'
import { type Intent, LeftOut, storeTransfers } from './record.ts'
import { recordTransfer } from './rounds.ts'
import type { NewTransfer, Transfer, TransferListQuery } from './schema.ts'
import { findOwnTransfer, listTransfers, type TransferId, type TransferRow } from './store.ts'
import { waitForOutcome } from './waiting.ts'

/**
 * Moves money out of a managed wallet, once. The intent, its first nonce and the Idempotency-Key commit together before anything is
 * signed; from then on the lane brings it to the chain whatever happens to this process. Waits for a block for a while, and says
 * `pending` where none came: the end is then told by an event.
 */
export async function createTransfer(ctx: Ctx, request: NewTransfer): Promise<Transfer> {
  const kind = { operation: 'transfer', action: 'transfers.create' } as const
  return answer(ctx, await makeTransfer(ctx, request, kind), ctx.transferWaitMs)
}

/** As what a transfer is judged by the spend policy, and what the audit log calls it. */
export interface TransferKind {
  readonly operation: PolicyOperation
  readonly action: string
}

/** The same for a caller who waits for no block: he is answered that it is under way, so an event tells the end, whatever it is. */
export function queueTransfer(ctx: Ctx, request: NewTransfer, kind: TransferKind): Promise<TransferId> {
  return makeTransfer(ctx, request, { ...kind, answered: 'pending' })
}

async function makeTransfer(
  ctx: Ctx,
  request: NewTransfer,
  { operation, action, answered }: TransferKind & { readonly answered?: Answered },
): Promise<TransferId> {
  return retryOnContention(ctx, async () => {
    const plan = await planTransfer(ctx, request)
    await prepareTransfer(ctx, plan)
    const intent = { ctx, request, plan, purpose: 'transfer', operation, action, answered } as const
    return recordTransfer(intent).catch(async (error: unknown) => {
      await keepRefusal(ctx, error)
      throw error
    })
  })
}

/** A row of another feature that is written in the transaction of the transfer that it is about. */
export interface Attached {
  /** Runs before anything of the transfer is locked or written. */
  readonly lock: (tx: Tx) => Promise<void>
  /** Runs after it, last in the transaction. */
  readonly write: (tx: Tx, transferId: TransferId) => Promise<void>
}

/**
 * Makes a transfer together with another feature's row: both are stored or neither is. It waits for no block; an event reports the end.
 */
export function attachTransfer(ctx: Ctx, request: NewTransfer, { lock, write }: Attached): Promise<void> {
  return retryOnContention(ctx, async () => {
    const plan = await planTransfer(ctx, request)
    await prepareTransfer(ctx, plan)
    const intent = { ctx, request, plan, purpose: 'transfer', operation: 'transfer', answered: 'pending' } as const
    await underPolicy(ctx, async (tx) => {
      await lock(tx)
      await write(tx, await storeOne(tx, intent))
    })
  })
}

/** Before `storeTransfer`, and outside any transaction: asks the chain for the first nonces of accounts that never sent. */
export async function prepareTransfer(ctx: Ctx, plan: TransferPlan): Promise<void> {
  for (const { sender } of plan.steps) await ctx.lanes.prepare(plan.network, sender)
}

/** Stores the planned transfer of a withdrawal in the caller's transaction, as `recordTransfer` does a caller's own. */
export async function storeTransfer(
  ctx: Ctx,
  tx: Tx,
  { request, plan }: { readonly request: NewTransfer; readonly plan: TransferPlan },
): Promise<TransferId> {
  return storeOne(tx, { ctx, request, plan, purpose: 'withdrawal', operation: 'transfer', answered: undefined })
}

async function storeOne(tx: Tx, intent: Intent): Promise<TransferId> {
  const [outcome] = await storeTransfers(tx, [intent]).catch((error: unknown) => {
    throw error instanceof LeftOut ? (error.causes.get(intent) ?? error) : error
  })
  if (outcome === undefined || outcome instanceof Error) throw outcome ?? new Error('a transfer was not stored')
  return outcome
}

/** The present state of a transfer, for a repeat of a request whose answer was never given: it waits as the first one did. */
export function transferState(ctx: Ctx, transferId: string): Promise<Transfer> {
  return answer(ctx, id('wtx').parse(transferId), ctx.transferWaitMs)
}

async function answer(ctx: Ctx, transferId: TransferId, waitMs: number): Promise<Transfer> {
  await waitForOutcome(ctx.db, transferId, waitMs)
  const row = await answeredState(ctx.db, transferId)
  if (row.reason !== null && !isOnItsWay(row))
    throw fail('transfer-reverted', { transferId, txHash: row.txHash, reason: row.reason })
  return shown(row)
}

/** A bridge takes minutes: whoever asked is answered as soon as a block has its first half. */
function isOnItsWay({ route, leftAt }: TransferRow): boolean {
  return route === 'partner-bridge' && leftAt !== null
}

export async function getTransfer(ctx: Ctx, transferId: TransferId): Promise<Transfer> {
  const row = await findOwnTransfer(ctx.db, ctx.tenant, transferId)
  if (row === undefined) throw fail('transfer-not-found')
  return shown(row)
}

export async function pageOfTransfers(ctx: Ctx, query: z.output<typeof TransferListQuery>): Promise<Page<Transfer>> {
  const { limit, cursor, fromWalletId } = query
  const rows = await listTransfers(ctx.db, ctx.tenant, { limit, after: openCursor(cursor), walletId: fromWalletId })
  const page = pageOf(rows, limit, (row) => row.id)
  return { items: page.items.map(shown), next: page.next }
}

function shown(row: TransferRow): Transfer {
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
    metadata: row.metadata,
    createdAt: row.createdAt,
    confirmedAt: row.confirmedAt,
  }
}

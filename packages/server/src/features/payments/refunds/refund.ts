import { formatAmount } from '@purser/protocol'
import type { z } from 'zod'
import type { Tx } from '../../../platform/db/db.ts'
import { id, newId, type PaymentId } from '../../../platform/ids.ts'
import { type Page, Reply } from '../../../platform/operation.ts'
import { EvmAddress, openAmount, openCursor, pageOf } from '../../../platform/wire.ts'
import { approvalStates } from '../../approvals/index.ts'
import { networkFor } from '../../chains/index.ts'
import { attachTransfer, findTransfers, type NewTransfer } from '../../transfers/index.ts'
import type { SourceWallet } from '../../wallets/index.ts'
import { graceMs } from '../delivery/redeem.ts'
import { announceRedemption } from '../delivery/store.ts'
import { fail } from '../errors.ts'
import { refusePayment } from '../logs.ts'
import type { Ctx } from '../ports.ts'
import { findPayment } from '../store.ts'
import type { Refund, RefundQuery, RefundRequest } from './schema.ts'
import { refuseUndoable } from './standing.ts'
import {
  addRefunded,
  findRefund,
  insertRefund,
  listRefunds,
  lockRefundable,
  type RefundableRow,
  type RefundId,
  type RefundRow,
} from './store.ts'

/** Seconds after which to retry for a payment that is being settled. */
const settlingSeconds = 5

/** The decision about a request to refund a payment. */
type RefundVerdict =
  | { readonly kind: 'refund' | 'announce' | 'not-refundable' | 'not-settled-yet' }
  | { readonly kind: 'wait'; readonly waitMs: number }

/**
 * Decides whether a payment may be refunded now. It may not while its response may still be delivered: as for a redemption, the
 * first request starts a grace period for the first handler, and a caller with the right to deliver keeps it until it ends.
 */
function refundVerdict(row: RefundableRow): RefundVerdict {
  const { status, payer, rawAmount, delivery, deliveredAt, redemptionMs, refundedRaw } = row
  if (payer === null || rawAmount === 0n) return { kind: 'not-refundable' }
  if (status !== 'settled') return { kind: status === 'settling' ? 'not-settled-yet' : 'not-refundable' }
  if (delivery === null || deliveredAt !== null || refundedRaw > 0n) return { kind: 'refund' }
  if (redemptionMs === null) return { kind: 'announce' }
  return redemptionMs > 0 ? { kind: 'wait', waitMs: redemptionMs } : { kind: 'refund' }
}

/**
 * Refunds a settled payment to its payer, fully or partly, as a transfer from a managed wallet under its policy. The refund, its
 * transfer and the refunded amount of the payment commit together, so that all refunds of a payment never exceed what was
 * settled.
 */
export async function refundPayment(
  ctx: Ctx,
  paymentId: PaymentId,
  request: RefundRequest,
): Promise<z.input<typeof Refund> | Reply> {
  const payment = await refundable(ctx, paymentId)
  await refuseUndoable(ctx, payment)
  const rawAmount = amountOf(request, payment)
  const transfer = await transferOf(ctx, payment, request, rawAmount)
  const refundId = newId('rfd', ctx)
  const reason = request.reason ?? null
  await attachTransfer(ctx, transfer, {
    refund: { paymentId, reason },
    lock: (tx) => addToRefunded(ctx, tx, paymentId, rawAmount),
    write: async (tx, transferId) => {
      await insertRefund(tx, ctx.tenant, {
        id: refundId,
        paymentId,
        transferId,
        rawAmount,
        reason,
        createdAt: ctx.clock.now(),
      })
      await ctx.idempotency?.commit(tx, refundId)
      const details = { paymentId, transferId, from: transfer.fromWalletId, amount: transfer.amount, reason }
      await ctx.audit(tx, { action: 'payments.refund', target: refundId, details })
    },
  })
  return refundState(ctx, refundId)
}

/**
 * Returns the payment if it may be refunded now. A grace period that this starts commits even if the request is refused until it
 * ends.
 */
async function refundable(ctx: Pick<Ctx, 'db' | 'tenant'>, paymentId: PaymentId): Promise<RefundableRow> {
  const { row, verdict } = await ctx.db.tx(async (tx) => {
    const found = await judge(ctx, tx, paymentId)
    if (found.verdict.kind === 'announce') await announceRedemption(tx, paymentId, graceMs)
    return found
  })
  refuse(verdict)
  return row
}

async function judge(ctx: Pick<Ctx, 'tenant'>, tx: Tx, paymentId: PaymentId) {
  const row = await lockRefundable(tx, ctx.tenant, paymentId)
  if (row === undefined) return refusePayment(tx, ctx.tenant, paymentId, fail('payment-not-found'))
  return { row, verdict: refundVerdict(row) }
}

function refuse(verdict: RefundVerdict): void {
  if (verdict.kind === 'refund') return
  if (verdict.kind === 'not-refundable') throw fail('payment-not-refundable')
  if (verdict.kind === 'not-settled-yet') throw fail('payment-not-refundable', { retryAfterSeconds: settlingSeconds })
  const waitMs = verdict.kind === 'wait' ? verdict.waitMs : graceMs
  throw fail('delivery-in-progress', { retryAfterSeconds: Math.ceil(waitMs / 1_000) })
}

/** Adds the amount to the payment's refunds, under its lock, so that other refunds and redemptions since are seen. */
async function addToRefunded(ctx: Pick<Ctx, 'tenant'>, tx: Tx, paymentId: PaymentId, rawAmount: bigint): Promise<void> {
  const { row, verdict } = await judge(ctx, tx, paymentId)
  refuse(verdict)
  refuseMoreThanPaid(row, rawAmount)
  await addRefunded(tx, paymentId, rawAmount)
}

/** In the token's smallest unit. */
function amountOf({ amount }: RefundRequest, payment: RefundableRow): bigint {
  const { decimals, rawAmount, refundedRaw } = payment
  const raw = amount === undefined ? rawAmount - refundedRaw : openAmount(amount, { path: '/amount', decimals })
  refuseMoreThanPaid(payment, raw)
  return raw
}

function refuseMoreThanPaid({ rawAmount, refundedRaw, decimals, token }: RefundableRow, raw: bigint): void {
  const left = rawAmount - refundedRaw
  if (raw > left || left === 0n)
    throw fail('refund-exceeds-payment', { refundable: formatAmount(left, decimals), token })
}

/** Returns the transfer that pays the refund, on the payment's own network. The recipient receives the full amount. */
async function transferOf(
  ctx: Pick<Ctx, 'db' | 'findSource' | 'tenant'>,
  payment: RefundableRow,
  request: RefundRequest,
  raw: bigint,
): Promise<NewTransfer> {
  const source = await sourceOf(ctx, request.fromWalletId ?? payment.walletId)
  if (source === undefined || networkFor(source.chain, ctx.tenant.environment).name !== payment.network)
    throw fail('managed-wallet-needed')
  return {
    fromWalletId: source.id,
    fromToken: payment.token,
    toAddress: EvmAddress.parse(payment.payer),
    toChain: source.chain,
    toToken: payment.token,
    amount: formatAmount(raw, payment.decimals),
    metadata: { refundOf: payment.id },
  }
}

async function sourceOf(
  ctx: Pick<Ctx, 'db' | 'findSource' | 'tenant'>,
  walletId: string | null,
): Promise<SourceWallet | undefined> {
  return walletId === null ? undefined : ctx.findSource(ctx.db, ctx.tenant, walletId)
}

/**
 * Returns the present state of a refund, with 202 while it waits for an approval, for its response and for a repeat whose first response
 * was never sent.
 */
export async function refundState(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  refundId: string,
): Promise<z.input<typeof Refund> | Reply> {
  const known: RefundId = id('rfd').parse(refundId)
  const row = await findRefund(ctx.db, ctx.tenant, known)
  const [refund] = row === undefined ? [] : await shownRefunds(ctx, [row])
  if (refund === undefined) throw new Error('a refund disappeared')
  return refund.approval?.status === 'waiting' ? new Reply(202, refund) : refund
}

/** Refunds of a payment, newest first, whatever their status. Throws `payment-not-found`. */
export async function pageOfRefunds(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  paymentId: PaymentId,
  { limit, cursor }: z.output<typeof RefundQuery>,
): Promise<Page<z.input<typeof Refund>>> {
  if ((await findPayment(ctx.db, ctx.tenant, paymentId)) === undefined)
    return refusePayment(ctx.db, ctx.tenant, paymentId, fail('payment-not-found'))
  const rows = await listRefunds(ctx.db, ctx.tenant, paymentId, { limit, after: openCursor(cursor) })
  const shownOf = pageOf(rows, limit, (row) => row.id)
  return { ...shownOf, items: await shownRefunds(ctx, shownOf.items) }
}

/** The refunds with the wallet, the hash and the approval of their transfers, in the order of the rows. */
async function shownRefunds(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  rows: readonly RefundRow[],
): Promise<z.input<typeof Refund>[]> {
  const found = await findTransfers(
    ctx.db,
    ctx.tenant,
    rows.map(({ transferId }) => transferId),
  )
  const approvals = await approvalStates(ctx, found)
  const transfers = new Map(found.map((transfer) => [transfer.id, transfer]))
  return rows.map((row) => {
    const transfer = transfers.get(row.transferId)
    if (transfer === undefined) throw new Error('a refund without its transfer')
    return {
      id: row.id,
      paymentId: row.paymentId,
      transferId: row.transferId,
      fromWalletId: transfer.walletId,
      toAddress: row.payer,
      amount: formatAmount(row.rawAmount, row.decimals),
      token: row.token,
      chain: row.chain,
      reason: row.reason,
      status: row.status,
      txHash: transfer.txHash,
      approval: approvals.get(transfer.approvalId) ?? null,
      createdAt: row.createdAt,
      completedAt: row.status === 'completed' ? row.endedAt : null,
    }
  })
}

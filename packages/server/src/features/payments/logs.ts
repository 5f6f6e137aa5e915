import { formatAmount, type JsonObject } from '@purser/protocol'
import type { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { isArchived } from '../../platform/db/archived-ids.ts'
import type { Queryable } from '../../platform/db/db.ts'
import { type PaymentId, type PaymentLogId, paymentIdOf } from '../../platform/ids.ts'
import type { Page } from '../../platform/operation.ts'
import { openCursor, pageOf } from '../../platform/wire.ts'
import { monthAround, type Recount } from '../plans/index.ts'
import { fail } from './errors.ts'
import { signReceipt } from './offers/sign.ts'
import type { Ctx } from './ports.ts'
import type { LogFilters, LogQuery, Payment, PaymentLog, RouteSummary } from './schema.ts'
import { findCarrier, listBatch } from './settlement-store.ts'
import {
  countingPayments,
  findPayment,
  findPaymentByLog,
  listNamedPayments,
  listPayments,
  listRouteTotals,
  type PaymentRow,
} from './store.ts'

/** Returns one payment of the caller's organisation and environment. */
export async function getPayment(
  ctx: Pick<Ctx, 'baseUrl' | 'db' | 'serviceSeal' | 'tenant'>,
  paymentId: PaymentId,
): Promise<z.input<typeof Payment>> {
  const row = await findPayment(ctx.db, ctx.tenant, paymentId)
  if (row === undefined) return refusePayment(ctx.db, ctx.tenant, paymentId, fail('payment-not-found'))
  const { batchId, batchPayments, block, isFinal, gasNanoUsd } = await findCarrier(ctx.db, row.id)
  return {
    ...logFields(row),
    id: row.id,
    rawAmount: row.rawAmount.toString(),
    network: row.network,
    payTo: row.payTo,
    resource: row.resource,
    description: row.description,
    settledAt: row.settledAt,
    failureReason: row.failureReason,
    deliveredAt: row.delivery === null ? row.settledAt : row.deliveredAt,
    redeemedAt: row.redeemedAt,
    refundedAmount: formatAmount(row.refundedRaw, row.decimals),
    challengeId: row.challengeId,
    batchId,
    batchPayments: Number(batchPayments),
    block: block === null ? null : Number(block),
    isFinal,
    gasUsd: formatAmount(gasNanoUsd, 9),
    receipt: row.status === 'settled' ? await signReceipt(ctx, row) : null,
  }
}

export async function listPaymentLogs(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  query: LogQuery,
): Promise<Page<z.input<typeof PaymentLog>>> {
  const { limit, cursor, batchId, ...filters } = query
  const amongIds = batchId && (await listBatch(ctx.db, ctx.tenant, batchId))
  const rows = await listPayments(ctx.db, ctx.tenant, { ...filters, amongIds }, { limit, after: openCursor(cursor) })
  const page = pageOf(rows, limit, (row) => row.logId)
  return { ...page, items: page.items.map(asLog) }
}

export async function getPaymentLog(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  logId: PaymentLogId,
): Promise<z.input<typeof PaymentLog>> {
  const row = await findPaymentByLog(ctx.db, ctx.tenant, logId)
  if (row === undefined) return refuseLog(ctx.db, ctx.tenant, logId)
  return asLog(row)
}

/** Whether the tenant has a payment log with this id. Other features use it to validate a reference. */
export async function paymentLogExists(db: Queryable, tenant: Tenant, logId: PaymentLogId): Promise<boolean> {
  return (await findPaymentByLog(db, tenant, logId)) !== undefined
}

/** Returns those payments of these logs that the tenant has, by the id of their log. */
export async function paymentsOfLogs(
  db: Queryable,
  tenant: Tenant,
  logIds: readonly PaymentLogId[],
): Promise<ReadonlyMap<PaymentLogId, PaymentRow>> {
  if (logIds.length === 0) return new Map()
  const rows = await listNamedPayments(
    db,
    logIds.map((logId) => ({ tenant, paymentId: paymentIdOf(logId) })),
  )
  return new Map(rows.map((row) => [row.logId, row]))
}

/** Returns totals per route and token of payments that are not known to have failed. */
export async function summarizeLogs(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  filters: LogFilters,
): Promise<z.input<typeof RouteSummary>[]> {
  const totals = await listRouteTotals(ctx.db, ctx.tenant, filters)
  return totals.map(({ route, token, decimals, totalPayments, totalRaw }) => ({
    route,
    token,
    totalPayments: Number(totalPayments),
    totalRevenue: formatAmount(totalRaw, decimals),
  }))
}

function asLog(row: PaymentRow): z.input<typeof PaymentLog> {
  return { ...logFields(row), id: row.logId, paymentId: row.id }
}

function logFields(row: PaymentRow) {
  return {
    route: row.route,
    method: row.method,
    amount: formatAmount(row.rawAmount, row.decimals),
    token: row.token,
    chain: row.chain,
    protocol: row.protocol,
    txHash: row.txHash,
    payer: row.payer,
    walletId: row.walletId,
    vaultId: row.vaultId,
    sessionId: row.sessionId,
    apiKeyId: row.apiKeyId,
    status: row.status,
    createdAt: row.createdAt,
  }
}

/** Refuses a payment that was not found: 410 to the organisation of an archived one, otherwise with the given error. */
export async function refusePayment(
  db: Queryable,
  tenant: Tenant,
  paymentId: PaymentId,
  otherwise: Error,
): Promise<never> {
  throw (await isArchived(db, tenant, paymentId)) ? fail('archived') : otherwise
}

/** Refuses a log that was not found, as `refusePayment` does. A log's id is its payment's id with another prefix, except for logs of old versions. */
async function refuseLog(db: Queryable, tenant: Tenant, logId: PaymentLogId): Promise<never> {
  if (await isArchived(db, tenant, logId)) throw fail('archived')
  return refusePayment(db, tenant, paymentIdOf(logId), fail('payment-log-not-found'))
}

/** Returns what a seal states about the payment that bought the vault, as of now; undefined if there is none. */
export async function sealReceipt(
  db: Queryable,
  tenant: Tenant,
  paymentId: PaymentId,
): Promise<JsonObject | undefined> {
  const payment = await findPayment(db, tenant, paymentId)
  if (payment === undefined) return undefined
  const { protocol, network, token, payer, payTo, txHash, resource, status } = payment
  const amount = formatAmount(payment.rawAmount, payment.decimals)
  const settledAt = payment.settledAt?.toISOString() ?? null
  return { paymentId, status, protocol, network, token, amount, payer, payTo, resource, txHash, settledAt }
}

/** Recounts the payments of the present month that did not end without money. */
export const paymentRecount: Recount = {
  kind: 'payments',
  counting: (tenant, now) => {
    const { start, end } = monthAround(now)
    return countingPayments(tenant, start, end)
  },
}

import { formatAmount } from '@purser/protocol'
import type { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import type { Queryable } from '../../platform/db/db.ts'
import type { PaymentId, PaymentLogId } from '../../platform/ids.ts'
import type { Page } from '../../platform/operation.ts'
import { openCursor, pageOf } from '../../platform/wire.ts'
import { refuseLog, refusePayment } from './archived.ts'
import { fail } from './errors.ts'
import type { Ctx } from './ports.ts'
import type { LogFilters, LogQuery, Payment, PaymentLog, RouteSummary } from './schema.ts'
import { findPayment, findPaymentByLog, listPayments, listRouteTotals, type PaymentRow } from './store.ts'

/** Returns one payment of the caller's organization and environment. */
export async function getPayment(ctx: Ctx, paymentId: PaymentId): Promise<z.input<typeof Payment>> {
  const row = await findPayment(ctx.db, ctx.tenant, paymentId)
  if (row === undefined) return refusePayment(ctx.db, ctx.tenant, paymentId, fail('payment-not-found'))
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
  }
}

export async function listPaymentLogs(
  ctx: Ctx,
  query: z.output<typeof LogQuery>,
): Promise<Page<z.input<typeof PaymentLog>>> {
  const { limit, cursor, ...filters } = query
  const rows = await listPayments(ctx.db, ctx.tenant, filters, { limit, after: openCursor(cursor) })
  const page = pageOf(rows, limit, (row) => row.logId)
  return { items: page.items.map(asLog), next: page.next }
}

export async function getPaymentLog(ctx: Ctx, logId: PaymentLogId): Promise<z.input<typeof PaymentLog>> {
  const row = await findPaymentByLog(ctx.db, ctx.tenant, logId)
  if (row === undefined) return refuseLog(ctx.db, ctx.tenant, logId)
  return asLog(row)
}

/** Whether the tenant has a payment log with this id. Other features use it to validate a reference. */
export async function paymentLogExists(db: Queryable, tenant: Tenant, logId: PaymentLogId): Promise<boolean> {
  return (await findPaymentByLog(db, tenant, logId)) !== undefined
}

/** Returns totals per route and token of payments that are not known to have failed. */
export async function summariseLogs(ctx: Ctx, filters: LogFilters): Promise<z.input<typeof RouteSummary>[]> {
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

import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { StoredBigInt, StoredHex } from '../../../platform/db/columns.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { idIs, isBelow, type ListedRows, listRows } from '../../../platform/db/page.ts'
import { type Id, id, type PaymentId } from '../../../platform/ids.ts'
import { type DueChecks, listDueChecks } from '../../plans/index.ts'
import type { TransferId } from '../../transfers/index.ts'
import { PaymentDelivery } from '../delivery/store.ts'
import { paymentStatuses } from '../schema.ts'
import { StoredSettlement } from '../store.ts'
import { refundStatuses } from './schema.ts'

export type RefundId = Id<'rfd'>

/** The columns of a payment that a refund reads. */
export const RefundableRow = z.object({
  id: id('pay'),
  status: z.enum(paymentStatuses),
  walletId: z.string().nullable(),
  chain: z.string(),
  network: z.string(),
  token: z.string(),
  asset: StoredHex,
  decimals: z.number(),
  payTo: StoredHex,
  payer: z.string().nullable(),
  claimKey: z.string().nullable(),
  /** The signature by which it was settled; null long after it was settled by an authorization. */
  settlement: StoredSettlement.nullable(),
  validBefore: z.date().nullable(),
  txHash: StoredHex.nullable(),
  createdAt: z.date(),
  settledAt: z.date().nullable(),
  rawAmount: StoredBigInt,
  refundedRaw: StoredBigInt,
  delivery: PaymentDelivery.nullable(),
  deliveredAt: z.date().nullable(),
  /** Milliseconds until the current right to deliver ends, by the database's clock; null if no redemption was requested. */
  redemptionMs: z.number().nullable(),
})
export type RefundableRow = z.output<typeof RefundableRow>

/** Locks a payment until the transaction ends, as redemptions do, so that each sees what the other did. */
export function lockRefundable(tx: Tx, tenant: Tenant, paymentId: PaymentId): Promise<RefundableRow | undefined> {
  return tx.maybeOne(
    RefundableRow,
    sql`
    select id, status, wallet_id, chain, network, token, asset, decimals, pay_to, payer, claim_key, settlement, valid_before, tx_hash, created_at, settled_at,
      raw_amount, refunded_raw, delivery, delivered_at,
      (extract(epoch from redemption_until - clock_timestamp()) * 1000)::float8 as redemption_ms
    from payments
    where ${idIs(paymentId)} and organisation_id is not distinct from ${tenant.organisationId} and environment is not distinct from ${tenant.environment}
    for no key update`,
  )
}

/** Changes the payment's refunded amount; a negative change returns a failed refund's part. The caller has locked the payment. */
export async function addRefunded(tx: Tx, paymentId: PaymentId, rawChange: bigint): Promise<void> {
  await tx.run(sql`
    update payments set refunded_raw = refunded_raw + ${rawChange.toString()}::numeric where ${idIs(paymentId)}`)
}

export interface NewRefund {
  readonly id: RefundId
  readonly paymentId: PaymentId
  readonly transferId: TransferId
  readonly rawAmount: bigint
  readonly reason: string | null
  readonly createdAt: Date
}

export async function insertRefund(tx: Tx, tenant: Tenant, refund: NewRefund): Promise<void> {
  const { id: refundId, paymentId, transferId, rawAmount, reason, createdAt } = refund
  await tx.run(sql`
    insert into payment_refunds (id, organisation_id, environment, payment_id, transfer_id, raw_amount, reason, created_at, check_at)
    values (${refundId}, ${tenant.organisationId}, ${tenant.environment}, ${paymentId}, ${transferId}, ${rawAmount.toString()}::numeric, ${reason},
      ${createdAt}, ${createdAt})`)
}

/** A refund with the fields of its payment that its response shows. */
export const RefundRow = z.object({
  id: id('rfd'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  paymentId: id('pay'),
  transferId: id('wtx'),
  rawAmount: StoredBigInt,
  reason: z.string().nullable(),
  status: z.enum(refundStatuses),
  createdAt: z.date(),
  endedAt: z.date().nullable(),
  chain: z.string(),
  token: z.string(),
  decimals: z.number(),
  payer: z.string(),
})
export type RefundRow = z.output<typeof RefundRow>

const rows = sql`
  select r.id, r.organisation_id, r.environment, r.payment_id, r.transfer_id, r.raw_amount, r.reason, r.status, r.created_at, r.ended_at,
    p.chain, p.token, p.decimals, p.payer
  from payment_refunds r join payments p on p.id = r.payment_id`

export function findRefund(db: Queryable, tenant: Tenant, refundId: RefundId): Promise<RefundRow | undefined> {
  return db.maybeOne(
    RefundRow,
    sql`${rows} where r.organisation_id = ${tenant.organisationId} and r.environment = ${tenant.environment} and r.id = ${refundId}`,
  )
}

/** The refunds of a payment, newest first, one more than the limit. */
export function listRefunds(
  db: Queryable,
  tenant: Tenant,
  paymentId: PaymentId,
  page: { readonly limit: number; readonly after: string | undefined },
): Promise<ListedRows<RefundRow>> {
  const { limit, after } = page
  return listRows(
    db,
    RefundRow,
    limit,
    sql`${rows}
    where r.organisation_id = ${tenant.organisationId} and r.environment = ${tenant.environment} and r.payment_id = ${paymentId}
      and ${isBelow(sql`r.id`, after)} order by r.id desc`,
  )
}

/** A condition: whether `takeDue` would take any. */
export function isAnyDue(now: Date): Sql {
  return sql`(select check_at from payment_refunds where status = 'pending' and check_at <= ${now} order by check_at limit 1) is not null`
}

/** Pending refunds in the form that `listDueChecks` reads. All of them wait for their transfers, which are in the database. */
const source = 'refunds'
const pending = sql`(select id, organisation_id, ${source}::text as network, check_at from payment_refunds where status = 'pending')`

/** Shortest and longest time between two reads of the transfer of a refund: an eighth of its age. */
const shortestMs = 1_000
const longestMs = 60_000

/**
 * Takes pending refunds of any tenant whose transfers are to be read, in shares of their owners, and postpones each before the read: one that
 * cannot be ended delays no others. The transaction must read in order.
 */
export async function takeDue(
  tx: Tx,
  { now, ...due }: Pick<DueChecks, 'most' | 'cursors'> & { readonly now: Date },
): Promise<RefundRow[]> {
  const at = sql`${now}::timestamptz`
  const dueIds = await listDueChecks(tx, { table: pending, network: source, now: at, ...due })
  if (dueIds.length === 0) return []
  await tx.run(sql`
    update payment_refunds set check_at = ${at} + least(greatest((${at} - created_at) / 8, ${shortestMs}::integer * interval '1 millisecond'),
      ${longestMs}::integer * interval '1 millisecond')
    where id = any(${dueIds}::text[]) and status = 'pending'`)
  return tx.many(
    RefundRow,
    sql`${rows} where r.id = any(${dueIds}::text[]) and r.status = 'pending' order by array_position(${dueIds}::text[], r.id)`,
  )
}

/** Ends a refund once; returns the number of changed rows. */
export function markRefundEnded(
  tx: Tx,
  refundId: RefundId,
  ended: { readonly status: 'completed' | 'failed'; readonly at: Date },
): Promise<number> {
  return tx.run(sql`
    update payment_refunds set status = ${ended.status}, ended_at = ${ended.at} where id = ${refundId} and status = 'pending'`)
}

import { parseAddress } from '@purser/protocol'
import { z } from 'zod'
import { utcMonthOf } from '../../platform/clock.ts'
import type { Tenant } from '../../platform/ctx.ts'
import { StoredBigInt, StoredHex } from '../../platform/db/columns.ts'
import { columnNames, columnsOf, type Queryable, type Sql, sql } from '../../platform/db/db.ts'
import { boundsOf, filtered, idIn, idIs, type ListedRows, listRows, type Seek, within } from '../../platform/db/page.ts'
import {
  type AccountId,
  type ApiKeyId,
  id,
  type PaymentId,
  type PaymentLogId,
  paymentIdOf,
} from '../../platform/ids.ts'
import { StoredAuthorization, StoredPermit2 } from '../relayer/index.ts'
import { PaymentDelivery } from './delivery/store.ts'
import { countsOf } from './rollups/rollup-store.ts'
import { type LogFilters, type LogQuery, paymentStatuses } from './schema.ts'

/** A complete transaction that the payer signed, on Tempo, to be broadcast unchanged. */
export const StoredTempoTransaction = z.object({
  kind: z.literal('tempo'),
  /** Final bytes, with the sponsor's signature if there is one. */
  raw: StoredHex,
  from: StoredHex,
  memo: StoredHex,
  /** Unix second after which no block can include it. */
  validBefore: z.string(),
  /** Most gas that the sponsor may pay for; 0 when the payer pays. */
  sponsoredGas: z.string(),
  /** The payer's nonce as `<key>/<nonce>`, of which one transaction can be mined; none for an expiring nonce. */
  nonceName: z.string().optional(),
})
export type StoredTempoTransaction = z.output<typeof StoredTempoTransaction>

export { StoredAuthorization, StoredPermit2 } from '../relayer/index.ts'

/** The stored authorization that settles a payment on its chain. */
export const StoredSettlement = z.union([StoredPermit2, StoredTempoTransaction, StoredAuthorization])
export type StoredSettlement = z.output<typeof StoredSettlement>

interface SettlementByKind {
  readonly eip3009: StoredAuthorization
  readonly permit2: StoredPermit2
  readonly tempo: StoredTempoTransaction
}

/** The settlement of one kind, or of one of several. */
export type SettlementOf<K extends keyof SettlementByKind> = {
  [Each in K]: SettlementByKind[Each] & { readonly kind: Each }
}[K]

const WrittenAndRead = z.object({
  id: id('pay'),
  logId: id('plog'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  walletId: z.string().nullable(),
  apiKeyId: z.union([id('key'), id('acc')]),
  protocol: z.enum(['x402', 'mpp']),
  scheme: z.string(),
  challengeId: z.string().nullable(),
  paymentIdentifier: z.string().nullable(),
  paymentFingerprint: z.string().nullable(),
  chain: z.string(),
  network: z.string(),
  token: z.string(),
  asset: z.string(),
  decimals: z.number(),
  rawAmount: StoredBigInt,
  payer: z.string().nullable(),
  payTo: z.string(),
  settlement: StoredSettlement.nullable(),
  validBefore: z.date().nullable(),
  resource: z.string().nullable(),
  route: z.string().nullable(),
  method: z.string().nullable(),
  description: z.string().nullable(),
  status: z.enum(paymentStatuses),
  txHash: z.string().nullable(),
  settledAt: z.date().nullable(),
  delivery: PaymentDelivery.nullable(),
  createdAt: z.date(),
})

/** A payment as its readers see it. Later steps write the columns that recording does not. */
export const PaymentRow = WrittenAndRead.extend({
  answeredAt: z.date().nullable(),
  failureReason: z.string().nullable(),
  vaultId: z.string().nullable(),
  sessionId: z.string().nullable(),
  deliveredAt: z.date().nullable(),
  redeemedAt: z.date().nullable(),
  redemptionToken: z.string().nullable(),
  redemptionUntil: z.date().nullable(),
  refundedRaw: StoredBigInt,
})
export type PaymentRow = z.output<typeof PaymentRow>

const columns = columnsOf(PaymentRow)

/** The columns that recording writes. Readers of a payment do not read the last six. */
const Recorded = WrittenAndRead.extend({
  protocolVersion: z.number().nullable(),
  claimKey: z.string().nullable(),
  door: z.string(),
  settlingAt: z.date().nullable(),
  gasReservedNanoUsd: StoredBigInt,
  checkAt: z.date().nullable(),
})

type InSnakeCase<T> = T extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${InSnakeCase<Rest>}`
  : ''

/** A column that recording a payment writes; the others have defaults. */
export type RecordedColumn = InSnakeCase<keyof typeof Recorded.shape>

export const recorded = columnNames(Recorded) as readonly RecordedColumn[]

export const recordedColumns = columnsOf(Recorded)

const ClaimRow = z.object({ claimKey: z.string() })

/** A payment about to be recorded, with its ids. */
export interface NewPayment {
  readonly id: PaymentId
  readonly logId: PaymentLogId
  /** Null for a facilitator's payment to an account that is not a wallet here. */
  readonly walletId: string | null
  /** The account where a person made the call. */
  readonly apiKeyId: ApiKeyId | AccountId
  readonly protocol: 'x402' | 'mpp'
  readonly protocolVersion: number | null
  readonly claimKey: string | null
  /** `upfront`: an x402 server requested settlement without a previous verify. */
  readonly entryPoint: 'verify' | 'facilitator' | 'upfront'
  readonly scheme: string
  readonly challengeId: string | null
  readonly paymentIdentifier: string | null
  readonly paymentFingerprint: string | null
  readonly chain: string
  readonly network: string
  readonly token: string
  readonly asset: string
  readonly decimals: number
  readonly rawAmount: bigint
  readonly payer: string | null
  readonly payTo: string
  readonly settlement: StoredSettlement | null
  readonly validBefore: Date | null
  readonly resource: string | null
  readonly route: string | null
  readonly method: string | null
  readonly description: string | null
  /** `settling` for a transaction that is broadcast as soon as it is recorded. */
  readonly status: 'verified' | 'settling' | 'settled'
  readonly txHash: string | null
  readonly settlingAt: Date | null
  readonly settledAt: Date | null
  /** For a caller that reports delivery; null for all others. */
  readonly delivery: PaymentDelivery | null
  readonly createdAt: Date
}

/** Returns which of these claims are used, by any organisation. */
export async function listTakenClaims(db: Queryable, claimKeys: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await db.many(
    ClaimRow,
    sql`
    select claim_key from unnest(${claimKeys}::text[]) as claim_key
    where exists (select from payment_claims where claim_hash = claim_hash(claim_key))`,
  )
  return new Set(rows.map((row) => row.claimKey))
}

export function findPayment(db: Queryable, tenant: Tenant, paymentId: PaymentId): Promise<PaymentRow | undefined> {
  return db.maybeOne(
    PaymentRow,
    sql`
    select ${columns} from payments
    where ${idIs(paymentId)} and organisation_id is not distinct from ${tenant.organisationId} and environment is not distinct from ${tenant.environment}`,
  )
}

/** A payment and the tenant that names it. */
export interface NamedPayment {
  readonly tenant: Tenant
  readonly paymentId: PaymentId
}

/** Returns payments that their tenants have, in any order. */
export function listNamedPayments(db: Queryable, named: readonly NamedPayment[]): Promise<PaymentRow[]> {
  const ids = named.map(({ paymentId }) => paymentId)
  return db.many(
    PaymentRow,
    sql`
    select ${columns} from payments
    where ${idIn(sql`id`, ids)} and (id, organisation_id, environment) in (
      select * from unnest(${ids}::text[], ${named.map(({ tenant }) => tenant.organisationId)}::text[],
        ${named.map(({ tenant }) => tenant.environment)}::text[]))`,
  )
}

/** Returns the payment of a log: by the id that both share, or for one of an older version by the log's own id. */
export async function findPaymentByLog(
  db: Queryable,
  tenant: Tenant,
  logId: PaymentLogId,
): Promise<PaymentRow | undefined> {
  const payment = await findPayment(db, tenant, paymentIdOf(logId))
  if (payment?.logId === logId) return payment
  return db.maybeOne(
    PaymentRow,
    sql`
    select ${columns} from payments
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and log_id = ${logId}`,
  )
}

/** The filters of the list; totals have fewer, since rollups keep no more. */
type ListFilters = Omit<LogQuery, 'limit' | 'cursor' | 'batchId'> & {
  /** Only these payments, a few. */
  readonly amongIds?: readonly PaymentId[] | undefined
}

/** Returns log rows, newest first, one more than the limit. */
export function listPayments(
  db: Queryable,
  tenant: Tenant,
  filters: ListFilters,
  page: { readonly limit: number; readonly after: string | undefined },
): Promise<ListedRows<PaymentRow>> {
  const { where, order } = matching(tenant, filters, page.after)
  const { amongIds } = filters
  // The few are read first: an index of another filter may find more.
  const source =
    amongIds === undefined
      ? sql`payments`
      : sql`(select * from payments where ${idIn(sql`id`, amongIds)} offset 0) as payments`
  return listRows(
    db,
    PaymentRow,
    page.limit,
    sql`
    select ${columns} from ${source} where ${where} order by ${order}`,
  )
}

export const RouteTotal = z.object({
  route: z.string().nullable(),
  token: z.string(),
  decimals: z.number(),
  totalPayments: z.bigint(),
  totalRaw: StoredBigInt,
})

/** Most entries of routes in a summary. The payments of all other routes share an entry per token. */
const summaryRoutesMax = 500

/**
 * Returns totals per route and token of the whole period, of the most paid routes; the row without a route has the rest, so that the sum of
 * the rows is exact. Payments that failed or expired earned nothing and are left out.
 */
export function listRouteTotals(
  db: Queryable,
  tenant: Tenant,
  { from, to, ...filters }: LogFilters,
): Promise<z.output<typeof RouteTotal>[]> {
  return db.many(
    RouteTotal,
    sql`
    with totals as (
      select route, token, decimals, sum(payments)::bigint as payments, sum(raw_amount) as raw_amount
      from ${countsOf(tenant, { from, to }, 'day', filters)} as counts where status in ('verified', 'settling', 'settled')
      group by route, token, decimals
    ), ordered as (
      select *, row_number() over (order by route is null, payments desc, route, token, decimals) as place from totals
    )
    select shown.route, token, decimals, sum(payments)::bigint as total_payments, sum(raw_amount) as total_raw
    from ordered cross join lateral (select case when place <= ${summaryRoutesMax} then route end as route) as shown
    group by shown.route, token, decimals order by total_payments desc, route, token, decimals`,
  )
}

/**
 * Selects the logs that match. Ids sort by time, so the index finds those of a period; at its two ends the exact time
 * decides.
 */
function matching(tenant: Tenant, filters: ListFilters, after?: string): Seek {
  const { route, protocol, walletId, apiKeyId, status, chain, payer } = filters
  const seek = filtered(
    [
      [sql`payer`, payer === undefined ? undefined : (parseAddress(payer) ?? payer)],
      [sql`route`, route],
      [sql`wallet_id`, walletId],
      [sql`api_key_id`, apiKeyId],
      [sql`status`, status],
      [sql`chain`, chain],
      [sql`protocol`, protocol],
    ],
    sql`log_id`,
    { ...boundsOf('plog', filters, after), hasPartitions: true },
  )
  return {
    ...seek,
    where: sql`organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and ${seek.where} and ${within(sql`created_at`, filters)}`,
  }
}

const hasNotFailed = sql`status not in ('voided', 'settlement_failed')`

/**
 * A condition on a row of payments: whether it has a place in the month. One that ended without money has none, and neither has one whose place was
 * freed while it settles.
 */
export const countsInMonth = sql`(${hasNotFailed} and has_place)`

/** Selects the number of payments of a month that have a place in it, to rebuild the counter. Proofs of the month have their own. */
export function countingPayments(tenant: Tenant, from: Date, to: Date): Sql {
  const own = sql`organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}`
  return sql`
    select (coalesce(sum(payments), 0)
      - coalesce((select used from usage_counters where ${own} and kind = 'proofs' and period = ${utcMonthOf(from)}), 0)
      - (select count(*) from payments where ${own} and status = 'settling' and not has_place and created_at >= ${from} and created_at < ${to}))::bigint
    from ${countsOf(tenant, { from, to }, 'day')} as counts
    where ${hasNotFailed}`
}

import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { type Queryable, type Sql, sql } from '../../../platform/db/db.ts'
import { paymentStatuses } from '../schema.ts'

/** A stretch of a tenant's payments: ids sort by time, so that the index of logs answers it. */
export interface LogRange {
  readonly fromId: string
  readonly toId: string
}

/** How payments are put into intervals. */
export interface Intervals {
  readonly from: Date
  readonly seconds: number
}

const CutRow = z.object({ logId: z.string(), createdAt: z.date() })
const Amount = z.string().transform((text) => BigInt(text))
const IntervalRow = z.object({
  at: z.date(),
  protocol: z.enum(['x402', 'mpp']),
  token: z.string(),
  decimals: z.number(),
  status: z.enum(paymentStatuses),
  payments: z.bigint(),
  raw: Amount,
})
const LatencyRow = z.object({
  at: z.date().nullable(),
  payments: z.bigint(),
  p50: z.number().nullable(),
  p95: z.number().nullable(),
})
const FailureRow = z.object({ reason: z.string().nullable(), payments: z.bigint() })

/** The payment before which as many newer ones lie in the range; undefined when there are fewer. */
export function findCut(db: Queryable, tenant: Tenant, range: LogRange, newerCount: number) {
  return db.maybeOne(
    CutRow,
    sql`select log_id, created_at from payments where ${within(tenant, range)} order by log_id desc offset ${newerCount} limit 1`,
  )
}

/** Counts and sums per interval, protocol, token and status. */
export function listIntervals(db: Queryable, tenant: Tenant, range: LogRange, intervals: Intervals) {
  return db.many(
    IntervalRow,
    sql`
    select ${intervalOf(intervals)} as at, protocol, token, decimals, status, count(*) as payments, sum(raw_amount) as raw
    from payments where ${within(tenant, range)}
    group by at, protocol, token, decimals, status order by at, protocol, token, decimals, status`,
  )
}

/** How long settlement took, per interval, and for the whole range in the row without a time. Stubs settle on no chain and do not count. */
export function listLatencies(db: Queryable, tenant: Tenant, range: LogRange, intervals: Intervals) {
  const ms = sql`extract(epoch from settled_at - created_at)::float8 * 1000`
  return db.many(
    LatencyRow,
    sql`
    select at, count(*) as payments, percentile_disc(0.5) within group (order by ms) as p50,
      percentile_disc(0.95) within group (order by ms) as p95
    from (
      select ${intervalOf(intervals)} as at, ${ms} as ms from payments
      where ${within(tenant, range)} and status = 'settled' and tx_hash is not null and settled_at is not null
    ) as settled
    group by grouping sets ((at), ()) order by at`,
  )
}

/** Failed settlements by their reason, the most frequent first. */
export function listFailures(db: Queryable, tenant: Tenant, range: LogRange) {
  return db.many(
    FailureRow,
    sql`
    select failure_reason as reason, count(*) as payments from payments
    where ${within(tenant, range)} and status = 'settlement_failed'
    group by failure_reason order by payments desc, reason limit 20`,
  )
}

function within(tenant: Tenant, { fromId, toId }: LogRange): Sql {
  return sql`organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}
    and log_id >= ${fromId} and log_id < ${toId}`
}

function intervalOf({ from, seconds }: Intervals): Sql {
  return sql`date_bin(make_interval(secs => ${seconds}), created_at, ${from}::timestamptz)`
}

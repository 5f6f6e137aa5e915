import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { StoredBigInt } from '../../../platform/db/columns.ts'
import { type Queryable, type Sql, sql } from '../../../platform/db/db.ts'
import { firstIdAt } from '../../../platform/db/page.ts'
import { countsOf, settlementTimesOf } from '../rollups/rollup-store.ts'
import { paymentStatuses } from '../schema.ts'

/** The period that is counted, and the rollups that may be read. */
export interface CountedAttempt {
  readonly from: Date
  readonly to: Date
  readonly grain: 'quarter' | 'none'
}

/** The intervals that payments are put into. */
export interface Intervals {
  readonly from: Date
  readonly seconds: number
  /** Only payments for this route. */
  readonly route?: string | undefined
}

const CutRow = z.object({ createdAt: z.date() })
const IntervalRow = z.object({
  beginsAt: z.date(),
  protocol: z.enum(['x402', 'mpp']),
  token: z.string(),
  decimals: z.number(),
  status: z.enum(paymentStatuses),
  payments: z.bigint(),
  raw: StoredBigInt,
})
const LatencyRow = z.object({
  beginsAt: z.date().nullable(),
  payments: z.bigint(),
  p50: z.bigint(),
  p95: z.bigint(),
})
const FailureRow = z.object({ reason: z.string().nullable(), payments: z.bigint() })

/** The time of the payment before which as many newer ones lie in the range; undefined when there are fewer. */
export async function findCut(db: Queryable, tenant: Tenant, { from, to }: CountedAttempt, newerCount: number) {
  const row = await db.maybeOne(
    CutRow,
    sql`
    select created_at from payments
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}
      and log_id >= ${firstIdAt('plog', from.getTime())} and log_id < ${firstIdAt('plog', to.getTime())}
    order by log_id desc offset ${newerCount} limit 1`,
  )
  return row?.createdAt
}

/** Counts and sums per interval, protocol, token and status. */
export function listIntervals(db: Queryable, tenant: Tenant, counted: CountedAttempt, intervals: Intervals) {
  return db.many(
    IntervalRow,
    sql`
    select ${intervalOf(intervals)} as begins_at, protocol, token, decimals, status, sum(payments)::bigint as payments, sum(raw_amount) as raw
    from ${countsOf(tenant, counted, counted.grain, { route: intervals.route })} as counts
    group by begins_at, protocol, token, decimals, status order by begins_at, protocol, token, decimals, status`,
  )
}

/** Lists the times that settlement took, per interval, and for the whole range in the row without a time. */
export function listLatencies(db: Queryable, tenant: Tenant, counted: CountedAttempt, intervals: Intervals) {
  return db.many(
    LatencyRow,
    sql`
    with times as materialized (
      select ${intervalOf(intervals)} as begins_at, ms, sum(payments) as payments
      from ${settlementTimesOf(tenant, counted, counted.grain)} as settled group by begins_at, ms
    )
    select begins_at, max(up_to)::bigint as payments, min(ms) filter (where up_to >= 0.5 * total) as p50,
      min(ms) filter (where up_to >= 0.95 * total) as p95
    from (
      select begins_at, ms, sum(payments) over (partition by begins_at order by ms) as up_to, sum(payments) over (partition by begins_at) as total
      from (select * from times union all select null, ms, sum(payments) from times group by ms) as each
    ) as ordered
    group by begins_at order by begins_at`,
  )
}

/** Failed settlements by their reason, the most frequent first. */
export function listFailures(db: Queryable, tenant: Tenant, counted: CountedAttempt) {
  return db.many(
    FailureRow,
    sql`
    select failure_reason as reason, sum(payments)::bigint as payments from ${countsOf(tenant, counted, counted.grain)} as counts
    where status = 'settlement_failed'
    group by failure_reason order by payments desc, reason limit 20`,
  )
}

function intervalOf({ from, seconds }: Intervals): Sql {
  return sql`date_bin(make_interval(secs => ${seconds}), at, ${from}::timestamptz)`
}

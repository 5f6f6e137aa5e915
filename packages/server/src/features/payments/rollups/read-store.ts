import { instantOf } from '../../../platform/clock.ts'
import type { Tenant } from '../../../platform/ctx.ts'
import { type Sql, sql } from '../../../platform/db/db.ts'
import { conjunction, idLagMsMax, type Period } from '../../../platform/db/page.ts'

/** Only the payments with these values. */
export interface RollupFilters {
  readonly route?: string | undefined
  readonly protocol?: string | undefined
  readonly walletId?: string | undefined
  readonly apiKeyId?: string | undefined
}

/** The largest rollups that may answer; `none` reads each payment. */
export type Grain = 'day' | 'quarter' | 'none'

export const quarterMs = 900_000
const dayMs = 86_400_000
const never = Date.UTC(9999, 0)

/**
 * Selects the counts of a tenant's payments as `at` (when a rollup or payment begins), `route`, `protocol`, `token`, `decimals`, `status`,
 * `failure_reason`, `payments` and `raw_amount`. Exact at the statement's instant: quarters that have no rollup, that are not whole, or that
 * changed after they were counted are read from their payments.
 */
export function countsOf(tenant: Tenant, period: Period, grain: Grain, filters: RollupFilters = {}): Sql {
  const own = sql`organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}`
  const matching = conjunction(
    (
      [
        [sql`route`, filters.route],
        [sql`protocol`, filters.protocol],
        [sql`wallet_id`, filters.walletId],
        [sql`api_key_id`, filters.apiKeyId],
      ] as const
    ).flatMap(([column, value]) => (value === undefined ? [] : [sql`${column} = ${value}`])),
  )
  const columns = sql`route, protocol, token, decimals, status, failure_reason`
  return sql`(
    ${partsOf(tenant, period, grain)}
    select rolled.* from ranges cross join lateral (
      select at, ${columns}, payments, raw_amount from payment_rollups
      where ${own} and span = ranges.span and at >= ranges.first and at < ranges.until and ${matching}
        and not exists (select from dirty where dirty.at >= payment_rollups.at and dirty.at < payment_rollups.at + ranges.span * interval '1 minute')
      offset 0
    ) as rolled
    union all
    select single.* from direct cross join lateral (
      select created_at as at, ${columns}, 1::bigint as payments, raw_amount from payments where ${own} and ${inDirect} and ${matching} offset 0
    ) as single
  )`
}

/** Selects how many payments took how many rounded milliseconds to settle, as `at`, `ms` and `payments`. Stubs settle on no chain and do not count. */
export function settlementTimesOf(tenant: Tenant, period: Period, grain: Exclude<Grain, 'day'>): Sql {
  const own = sql`organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}`
  return sql`(
    ${partsOf(tenant, period, grain)}
    select rolled.* from ranges cross join lateral (
      select at, ms, payments from settlement_times
      where ${own} and at >= ranges.first and at < ranges.until and not exists (select from dirty where dirty.at = settlement_times.at) offset 0
    ) as rolled where ranges.span = 15
    union all
    select single.* from direct cross join lateral (
      select created_at as at, settlement_ms(created_at, settled_at) as ms, 1::bigint as payments from payments
      where ${own} and ${inDirect} and ${settledOnChain} offset 0
    ) as single
  )`
}

/** A payment whose time to settle counts. */
export const settledOnChain = sql`status = 'settled' and tx_hash is not null and settled_at is not null`

// A payment gets its id and its time within a minute, and its time decides.
const lag = sql`${idLagMsMax}::float8 * interval '1 ms'`
const inDirect = sql`log_id >= first_id_at('plog', direct.first - ${lag}) and log_id < first_id_at('plog', direct.until + ${lag})
  and created_at >= direct.first and created_at < direct.until`

/** Divides a period into ranges of rollups, and periods of which the payments are read. */
function partsOf(tenant: Tenant, period: Period, grain: Grain): Sql {
  const from = Math.max(0, period.from?.getTime() ?? 0)
  const to = Math.max(from, period.to?.getTime() ?? never)
  const [first, last] =
    grain === 'none' ? [to, to] : [Math.ceil(from / quarterMs) * quarterMs, Math.floor(to / quarterMs) * quarterMs]
  const firstDay = grain === 'day' ? Math.ceil(from / dayMs) * dayMs : never
  return sql`
    with cut as materialized (
      select until, greatest(${at(firstDay)}, date_trunc('day', until, 'UTC')) as days_until
      from (select least(${at(last)}, greatest(sealed_until, ${at(first)})) as until from payment_rollup_state) as sealed
    ), dirty as materialized (
      select distinct changed.at from payment_rollup_changes as changed, cut
      where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and changed.at >= ${at(first)} and changed.at < until
    ), ranges as materialized (
      select 1440 as span, ${at(firstDay)} as first, days_until as until from cut
      union all select 15, ${at(first)}, least(${at(firstDay)}, until) from cut
      union all select 15, days_until, until from cut
      union all select distinct 15, date_trunc('day', dirty.at, 'UTC'), date_trunc('day', dirty.at, 'UTC') + interval '1 day' from dirty, cut
        where dirty.at >= ${at(firstDay)} and dirty.at < days_until
    ), direct as materialized (
      select ${at(from)} as first, ${at(Math.min(first, to))} as until
      union all select greatest(${at(first)}, until), ${at(to)} from cut
      union all select at, at + interval '15 minutes' from dirty
    )`
}

function at(unixMs: number): Sql {
  return sql`${instantOf(unixMs)}::timestamptz`
}

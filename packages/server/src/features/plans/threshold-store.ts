import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import type { UsageKind } from './quotas.ts'

/** A plan's quota of a kind in a calendar month (UTC). */
export interface MonthlyQuota {
  readonly kind: UsageKind
  readonly limit: number
  readonly month: string
}

/** Returns the shares of the quota that were reported. */
export async function listReported(
  db: Queryable,
  tenant: Tenant,
  { kind, limit, month }: MonthlyQuota,
): Promise<readonly number[]> {
  const rows = await db.many(
    z.object({ percent: z.number() }),
    sql`
    select percent from usage_thresholds
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and kind = ${kind} and month = ${month}
      and quota = ${limit}`,
  )
  return rows.map(({ percent }) => percent)
}

/** Records the shares that were reported; the caller has locked the counter. */
export async function insertReported(
  tx: Tx,
  tenant: Tenant,
  { kind, limit, month }: MonthlyQuota,
  { percents, reachedAt }: { readonly percents: readonly number[]; readonly reachedAt: Date },
): Promise<void> {
  await tx.run(sql`
    insert into usage_thresholds (organisation_id, environment, kind, month, percent, quota, reached_at)
    select ${tenant.organisationId}, ${tenant.environment}, ${kind}, ${month}, percent, ${limit}, ${reachedAt}
    from unnest(${percents}::int[]) as percent`)
}

import type { Tenant } from '../../platform/ctx.ts'
import type { Queryable, Sql } from '../../platform/db/db.ts'
import type { UsageKind } from './quotas.ts'

/** Counts one kind from its rows. Each feature that counts has one; the process's ports contain them all. */
export interface Recount {
  readonly kind: UsageKind
  /** Selects the number that exists now, or for a kind per month the number in the calendar month that contains `now`. */
  counting(tenant: Tenant, now: Date): Sql
  /** The number that the counter still contains of expired things, which is subtracted before it is shown. Omitted: none. */
  gone?(db: Queryable, tenant: Tenant, now: Date): Promise<number>
}

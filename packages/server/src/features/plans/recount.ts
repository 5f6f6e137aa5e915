import type { Tenant } from '../../platform/ctx.ts'
import type { Queryable } from '../../platform/db/db.ts'
import type { UsageKind } from './quotas.ts'

/** Counts one kind from its rows. Each feature that counts has one; the process's ports contain them all. */
export interface Recount {
  readonly kind: UsageKind
  /** The number that exists now, or for a kind per month the number in the calendar month that contains `now`. */
  count(db: Queryable, tenant: Tenant, now: Date): Promise<number>
  /** The number that the counter still contains of expired things, which is subtracted before it is shown. Omitted: none. */
  gone?(db: Queryable, tenant: Tenant, now: Date): Promise<number>
}

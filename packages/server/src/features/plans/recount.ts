import type { Tenant } from '../../platform/ctx.ts'
import type { Queryable } from '../../platform/db/db.ts'
import type { UsageKind } from './quotas.ts'

/** How one kind is counted from its records. Each room that counts has one; the process's ports hold them all. */
export interface Recount {
  readonly kind: UsageKind
  /** What there is of the kind now, or in the calendar month that holds `now` for what is counted per month. */
  count(db: Queryable, tenant: Tenant, now: Date): Promise<number>
  /** What the counter still holds of what is gone already, and whoever is shown the counter is not to see. Left out: nothing. */
  gone?(db: Queryable, tenant: Tenant, now: Date): Promise<number>
}

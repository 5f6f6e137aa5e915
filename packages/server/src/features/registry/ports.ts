import type { Tenant } from '../../platform/ctx.ts'
import type { Queryable } from '../../platform/db/db.ts'
import type { PaymentLogId } from '../../platform/ids.ts'

declare module '../../platform/ctx.ts' {
  interface Ports {
    /** Whether the tenant has a payment log with that id. */
    readonly paymentLogExists: (db: Queryable, tenant: Tenant, logId: PaymentLogId) => Promise<boolean>
  }
}

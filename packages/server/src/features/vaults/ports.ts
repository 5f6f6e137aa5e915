import type { JsonObject } from '@purser/protocol'
import type { Tenant } from '../../platform/ctx.ts'
import type { Queryable } from '../../platform/db/db.ts'
import type { Id, PaymentId } from '../../platform/ids.ts'
import type { PlanName } from '../plans/index.ts'

/** How long a vault lives when nobody says, and at most. -1 for the most means unlimited. */
export interface TtlBounds {
  readonly secondsDefault: number
  readonly secondsMax: number
}

declare module '../../platform/ctx.ts' {
  interface Ports {
    /** Told after the commit that a vault has news; readers take the table as truth. Must not throw. */
    readonly vaultNews?: (vaultId: Id<'vlt'>) => void
    /** Where the deployment's configuration sets other bounds than the plan does. */
    readonly vaultTtls?: Readonly<Partial<Record<PlanName, TtlBounds>>>
    /** The receipt of the payment that bought a vault, as the seal keeps it; undefined where there is no such payment. */
    readonly receiptForSeal?: (db: Queryable, tenant: Tenant, paymentId: PaymentId) => Promise<JsonObject | undefined>
  }
}

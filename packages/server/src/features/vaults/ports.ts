import type { JsonObject } from '@purser/protocol'
import type { Tenant } from '../../platform/ctx.ts'
import type { Queryable } from '../../platform/db/db.ts'
import type { Id, PaymentId } from '../../platform/ids.ts'
import type { EndedReaders } from '../../platform/reader.ts'
import type { PlanName } from '../plans/index.ts'

/** Default and longest lifetime of a vault. -1 for the longest means unlimited. */
export interface TtlBounds {
  readonly secondsDefault: number
  readonly secondsMax: number
}

declare module '../../platform/ctx.ts' {
  interface Ports {
    /** Notified after the commit that a vault has new events; readers read the table. Must not throw. */
    readonly vaultNews?: (vaultId: Id<'vlt'>) => void
    readonly endedReaders: EndedReaders
    /** Bounds from the deployment's configuration that replace the plan's. */
    readonly vaultTtls?: Readonly<Partial<Record<PlanName, TtlBounds>>>
    /** Returns the receipt of the payment that bought a vault, as the seal stores it; undefined if there is no such payment. */
    readonly receiptForSeal?: (db: Queryable, tenant: Tenant, paymentId: PaymentId) => Promise<JsonObject | undefined>
  }
}

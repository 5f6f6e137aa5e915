import type { Call, Deps as PlatformDeps, Tenant } from '../../platform/ctx.ts'
import type { Queryable } from '../../platform/db/db.ts'
import type { PaymentLogId } from '../../platform/ids.ts'
import { type DeclareOperation, operationFor } from '../../platform/operation.ts'
import type { PlanDeps } from '../plans/index.ts'

/** Dependencies of the feature registry. */
export interface Deps extends PlatformDeps, PlanDeps {
  /** Whether the tenant has a payment log with that id. */
  readonly paymentLogExists: (db: Queryable, tenant: Tenant, logId: PaymentLogId) => Promise<boolean>
  /** The currencies of those payments of the tenant that exist, by the id of their log. */
  readonly paymentsOfLogs: (
    db: Queryable,
    tenant: Tenant,
    logIds: readonly PaymentLogId[],
  ) => Promise<ReadonlyMap<PaymentLogId, PaidWith>>
}

/** The currency of a payment. */
export interface PaidWith {
  /** The name of the network. */
  readonly network: string
  /** Address of the token. */
  readonly asset: string
  readonly decimals: number
}

/** Context of one call. */
export interface Ctx extends Deps, Call {}

export const operation: DeclareOperation<Deps> = operationFor()

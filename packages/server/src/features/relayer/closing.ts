import { type AuditEntry, appendRecords } from '../../platform/audit.ts'
import type { Tenant } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { inLockOrder } from '../../platform/db/lock-order.ts'
import { forTenant } from '../../platform/work/runner.ts'
import { changeGas, type GasChange } from '../plans/index.ts'
import type { System } from './parts.ts'

/** What several features change for the same organizations when something ends: gas budgets and audit logs. */
export interface Closing {
  readonly gas: readonly GasChange[]
  readonly audits: readonly TenantAudit[]
}

export interface TenantAudit {
  readonly tenant: Tenant
  readonly entry: AuditEntry
}

/**
 * Writes closings, last of all that a transaction does: budgets first, then each organization's log, in one order. A transaction that ends
 * things of several features takes each of these locks once and after all others, so that no two wait for each other.
 */
export async function close(ctx: System, tx: Tx, closings: readonly Closing[]): Promise<void> {
  await changeGas(
    tx,
    closings.flatMap(({ gas }) => gas),
  )
  const audits = Map.groupBy(
    closings.flatMap((closing) => closing.audits),
    ({ tenant }) => tenant.organisationId,
  )
  for (const [, own] of inLockOrder<readonly TenantAudit[]>(audits))
    await appendRecords(
      tx,
      own.map(({ tenant, entry }) => ({ ctx: forTenant(ctx, tenant), entry })),
    )
}

import { type AuditEntry, appendAudit } from '../../platform/audit.ts'
import type { Environment } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import type { OrganisationId } from '../../platform/ids.ts'
import type { Ctx } from './ports.ts'

/** What changing an organization needs, whether an API key or the operator requests it. */
export type Acting = Pick<Ctx, 'db' | 'clock' | 'random' | 'actor' | 'requestId'>

/**
 * Writes to the log of the organization that is changed, which is not always the caller's. A record about the organization as a
 * whole has no environment.
 */
export function auditIn(
  ctx: Acting,
  tx: Tx,
  organisationId: OrganisationId,
  environment: Environment | null,
  entry: AuditEntry,
): void {
  const { clock, random, actor, requestId } = ctx
  appendAudit({ clock, random, actor, requestId, tenant: { organisationId, environment } }, tx, entry)
}

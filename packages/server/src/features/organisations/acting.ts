import { type AuditEntry, appendAudit } from '../../platform/audit.ts'
import type { Ctx, Environment } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import type { OrganisationId } from '../../platform/ids.ts'

/** What changing an organisation takes, whether an API key asks or the operator. */
export type Acting = Pick<Ctx, 'db' | 'clock' | 'random' | 'actor' | 'requestId'>

/**
 * Writes to the log of the organisation that is changed, which is not always the caller's. What concerns the
 * organisation as a whole has no environment.
 */
export function auditIn(
  ctx: Acting,
  tx: Tx,
  organisationId: OrganisationId,
  environment: Environment | null,
  entry: AuditEntry,
): Promise<void> {
  const { clock, random, actor, requestId } = ctx
  return appendAudit({ clock, random, actor, requestId, tenant: { organisationId, environment } }, tx, entry)
}

import { type AuditEntry, appendAudit } from '../../platform/audit.ts'
import type { Environment } from '../../platform/ctx.ts'
import type { Queryable, Tx } from '../../platform/db/db.ts'
import type { OrganisationId } from '../../platform/ids.ts'
import type { Ctx } from './ports.ts'
import { type AccountRow, findAccount, findKeyCreator } from './store.ts'

/** Returns the account behind the call: the person, or the account that created the API key. Keys that a key creates belong to that account too. */
export async function callersAccount(ctx: Ctx, db: Queryable): Promise<AccountRow> {
  const account = await findCaller(ctx, db)
  if (account === undefined) throw new Error('the caller has no account')
  return account
}

function findCaller({ actor, tenant }: Ctx, db: Queryable): Promise<AccountRow | undefined> {
  if (actor.kind === 'person') return findAccount(db, actor.accountId)
  if (actor.kind === 'api-key') return findKeyCreator(db, tenant.organisationId, actor.apiKeyId)
  throw new Error('only a person or an API key has an account')
}

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

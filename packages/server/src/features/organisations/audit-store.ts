import { z } from 'zod'
import { operatorLog } from '../../platform/audit.ts'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import { id } from '../../platform/ids.ts'
import { EnvironmentName } from './schema.ts'

const Actor = z.looseObject({ kind: z.enum(['api-key', 'person', 'guest', 'operator', 'system']) })

export const AuditRow = z.object({
  id: id('aud'),
  sequence: z.bigint(),
  environment: EnvironmentName.nullable(),
  action: z.string(),
  actor: Actor,
  requestId: z.string(),
  target: z.string().nullable(),
  details: z.record(z.string(), z.unknown()),
  createdAt: z.date(),
  previousHash: z.instanceof(Uint8Array),
  hash: z.instanceof(Uint8Array),
})
export type AuditRow = z.output<typeof AuditRow>

/**
 * Returns records, newest first, one more than the limit. A test key sees records about the organization as a whole and the test
 * environment; a live key sees the whole log, since only a whole chain can be checked.
 */
export function listAuditRecords(
  db: Queryable,
  tenant: Tenant,
  page: { readonly limit: number; readonly after: string | undefined },
): Promise<AuditRow[]> {
  return db.many(
    AuditRow,
    sql`
    select id, sequence, environment, action, actor, request_id, target, details, created_at, previous_hash, hash from audit_log
    where organisation_id = ${tenant.organisationId}
      and (environment is null or environment = ${tenant.environment} or ${tenant.environment}::text = 'live')
      and (${page.after ?? null}::bigint is null or sequence < ${page.after ?? null}::bigint)
    order by sequence desc limit ${page.limit + 1}`,
  )
}

/** Returns records of the operator's own log, newest first. */
export function listOperatorRecords(db: Queryable, limit: number): Promise<AuditRow[]> {
  return db.many(
    AuditRow,
    sql`
    select id, sequence, environment, action, actor, request_id, target, details, created_at, previous_hash, hash from audit_log
    where organisation_id = ${operatorLog} order by sequence desc limit ${limit}`,
  )
}

/** Makes every statement of the transaction read one snapshot, so that records appended meanwhile break no check. */
export async function freezeSnapshot(tx: Tx): Promise<void> {
  await tx.run(sql`set transaction isolation level repeatable read, read only`)
}

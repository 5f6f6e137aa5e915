import { z } from 'zod'
import { operatorLog, StoredRecord } from '../../platform/audit.ts'
import { instantOf } from '../../platform/clock.ts'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import {
  conjunction,
  filtered,
  idLagMsMax,
  type ListedRows,
  listRows,
  type Period,
  within,
} from '../../platform/db/page.ts'
import { id } from '../../platform/ids.ts'
import { EnvironmentName } from './schema.ts'

const Actor = z.looseObject({ kind: z.enum(['api-key', 'person', 'guest', 'operator', 'system']) })

export const AuditRow = StoredRecord.extend({ id: id('aud'), environment: EnvironmentName.nullable(), actor: Actor })
export type AuditRow = z.output<typeof AuditRow>

export interface AuditFilters extends Period {
  readonly action?: string | undefined
  readonly target?: string | undefined
  /** The id of an API key or an account. */
  readonly actor?: string | undefined
}

/** Above each sequence. */
const bigintMax = (2n ** 63n - 1n).toString()

/**
 * Returns records, newest first, one more than the limit. A test key sees records about the organisation as a whole and the test
 * environment; a live key sees the whole log, since only a whole chain can be checked.
 */
export function listAuditRecords(
  db: Queryable,
  tenant: Tenant,
  filters: AuditFilters,
  page: { readonly limit: number; readonly after: string | undefined },
): Promise<ListedRows<AuditRow>> {
  const { action, target, actor } = filters
  const columnsOf = [
    [sql`target`, target] as const,
    [sql`coalesce(actor ->> 'apiKeyId', actor ->> 'accountId')`, actor] as const,
    [sql`action`, action] as const,
  ]
  const { where, order } = filtered(columnsOf, sql`sequence`, {
    least: '0',
    below: page.after ?? bigintMax,
    hasPartitions: true,
  })
  return listRows(
    db,
    AuditRow,
    page.limit,
    sql`
    select id, sequence, environment, action, actor, request_id, target, details, created_at, previous_hash, hash from audit_log
    where organisation_id = ${tenant.organisationId}
      and (environment is null or environment = ${tenant.environment} or ${tenant.environment}::text = 'live')
      and ${where} and ${inPeriod(tenant, filters)} order by ${order}`,
  )
}

/**
 * Selects the records of a period. Sequences follow the time except for differences between the clocks of several processes, so the index on
 * sequences is read a minute wider on both sides.
 */
function inPeriod({ organisationId }: Tenant, period: Period): Sql {
  const { from, to } = period
  const firstAfter = (time: Date) =>
    sql`coalesce((select a.sequence from audit_log a where a.organisation_id = ${organisationId} and a.created_at >= ${time}
      order by a.created_at, a.sequence limit 1), ${bigintMax})`
  return conjunction([
    within(sql`created_at`, period),
    ...(from === undefined ? [] : [sql`sequence >= ${firstAfter(instantOf(from.getTime() - idLagMsMax))}`]),
    ...(to === undefined ? [] : [sql`sequence < ${firstAfter(instantOf(to.getTime() + idLagMsMax))}`]),
  ])
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

/** Makes every statement of the transaction read one snapshot, so that records that are appended or archived meanwhile break no check. */
export async function freezeSnapshot(tx: Tx): Promise<void> {
  await tx.run(sql`set transaction isolation level repeatable read, read only`)
  // Before the snapshot: a month that is detached behind it would be neither in the table nor among the archived ones.
  await tx.run(sql`lock table audit_log in access share mode`)
}

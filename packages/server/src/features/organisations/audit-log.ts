import type { z } from 'zod'
import { type AuditOwner, type AuditVerdict, operatorLog, verifyAudit } from '../../platform/audit.ts'
import type { Page } from '../../platform/operation.ts'
import { openNumberCursor, pageOf } from '../../platform/wire.ts'
import { type AuditRow, freezeSnapshot, listAuditRecords, listOperatorRecords } from './audit-store.ts'
import type { Ctx, Deps } from './ports.ts'
import type { AuditLogQuery, AuditLogRecord } from './schema.ts'
import { findOrganisation } from './store.ts'

export async function pageOfAuditLog(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  { limit, cursor, ...filters }: AuditLogQuery,
): Promise<Page<z.input<typeof AuditLogRecord>>> {
  const rows = await listAuditRecords(ctx.db, ctx.tenant, filters, { limit, after: openNumberCursor(cursor) })
  const page = pageOf(rows, limit, (row) => row.sequence.toString())
  return { ...page, items: page.items.map(shown) }
}

function shown(row: AuditRow): z.input<typeof AuditLogRecord> {
  return {
    ...row,
    sequence: Number(row.sequence),
    previousHash: Buffer.from(row.previousHash).toString('hex'),
    hash: Buffer.from(row.hash).toString('hex'),
  }
}

/** Returns the newest records of the operator's own log, newest first; for direct access to the database. */
export async function readOperatorLog(
  { db }: Pick<Deps, 'db'>,
  limit: number,
): Promise<z.input<typeof AuditLogRecord>[]> {
  return (await listOperatorRecords(db, limit)).map(shown)
}

/**
 * Checks that an audit log is intact: recomputes every hash; no record may be missing, and none may follow the head. Every
 * organisation's log begins with its creation, so an empty one was emptied; the operator's own log is empty until the first
 * rotation. Undefined for an unknown organisation.
 */
export function verifyAuditLog(deps: Pick<Deps, 'db'>, owner: AuditOwner): Promise<AuditVerdict | undefined> {
  return deps.db.tx(async (tx) => {
    await freezeSnapshot(tx)
    const verdict = await verifyAudit(tx, owner)
    if (!verdict.intact || verdict.records > 0n || owner === operatorLog) return verdict
    const known = await findOrganisation(tx, owner)
    return known === undefined ? undefined : { intact: false, brokenAt: 1n }
  })
}

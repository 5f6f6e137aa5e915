import type { z } from 'zod'
import { type AuditVerdict, verifyAudit } from '../../platform/audit.ts'
import type { Ctx, Deps } from '../../platform/ctx.ts'
import type { OrganisationId } from '../../platform/ids.ts'
import type { Page } from '../../platform/operation.ts'
import { type PageQuery, pageOf } from '../../platform/wire.ts'
import { freezeSnapshot, listAuditRecords } from './audit-store.ts'
import type { AuditLogRecord } from './schema.ts'
import { openSequenceCursor } from './sequence-cursor.ts'
import { findOrganisation } from './store.ts'

export async function pageOfAuditLog(
  ctx: Ctx,
  query: z.output<typeof PageQuery>,
): Promise<Page<z.input<typeof AuditLogRecord>>> {
  const after = openSequenceCursor(query.cursor)
  const rows = await listAuditRecords(ctx.db, ctx.tenant, { limit: query.limit, after })
  const page = pageOf(rows, query.limit, (row) => row.sequence.toString())
  const items = page.items.map((row) => ({
    ...row,
    sequence: Number(row.sequence),
    previousHash: Buffer.from(row.previousHash).toString('hex'),
    hash: Buffer.from(row.hash).toString('hex'),
  }))
  return { items, next: page.next }
}

/**
 * Whether an organisation's audit log is whole: every hash recomputed, no record missing, none after the head. Every
 * organisation's log begins with its founding, so an empty one was emptied. Undefined for an organisation unknown.
 */
export function verifyAuditLog(
  deps: Pick<Deps, 'db'>,
  organisationId: OrganisationId,
): Promise<AuditVerdict | undefined> {
  return deps.db.tx(async (tx) => {
    await freezeSnapshot(tx)
    const verdict = await verifyAudit(tx, organisationId)
    if (!verdict.intact || verdict.records > 0n) return verdict
    const known = await findOrganisation(tx, organisationId)
    return known === undefined ? undefined : { intact: false, brokenAt: 1n }
  })
}

import { z } from 'zod'
import { listOrganisationIds, readOperatorLog, verifyAuditLog } from '../features/organisations/index.ts'
import { type AuditOwner, operatorLog } from '../platform/audit.ts'
import { id } from '../platform/ids.ts'
import { type Command, command, linesOr } from './command.ts'

const verifyAuditLogs = command({
  name: 'verify-audit-log',
  summary: 'Recompute the hash chain of one audit log or of all; exit 1 when one is broken.',
  options: { organisation: "id of the organisation (org_…); all of them and the operator's own if omitted" },
  schema: z.strictObject({ organisation: id('org').optional() }),
  async run(operator, { organisation }) {
    const all = async (): Promise<AuditOwner[]> => [operatorLog, ...(await listOrganisationIds(operator.db))]
    const results = []
    for (const owner of organisation === undefined ? await all() : [organisation])
      results.push(await judge(operator, owner))
    const lines = results.map(({ organisationId, says }) => `${organisationId}  ${says}`)
    const broken = results.some((result) => !result.intact)
    return { lines, json: results, exitCode: broken ? 1 : 0 }
  },
})

async function judge(operator: Parameters<typeof verifyAuditLog>[0], organisationId: AuditOwner) {
  const verdict = await verifyAuditLog(operator, organisationId)
  if (verdict === undefined) return { organisationId, intact: false, says: 'no such organisation' }
  if (!verdict.intact) return { organisationId, intact: false, says: `BROKEN at record ${verdict.brokenAt}` }
  const archived = verdict.archived === undefined ? '' : `, ${verdict.archived} of them archived`
  return { organisationId, intact: true, says: `intact, ${verdict.records} records${archived}` }
}

const showOperatorLog = command({
  name: 'operator-log',
  summary: 'Show operator actions on the whole deployment (rotations of its keys), newest first.',
  options: { limit: 'how many records (default 50, at most 1000)' },
  schema: z.strictObject({ limit: z.coerce.number().int().min(1).max(1_000).default(50) }),
  async run(operator, { limit }) {
    const records = await readOperatorLog(operator, limit)
    const lines = records.map(
      ({ sequence, createdAt, action, target, details }) =>
        `${sequence}  ${createdAt.toISOString()}  ${action}  ${target ?? ''}  ${JSON.stringify(details)}`,
    )
    return { lines: linesOr(lines, 'no records'), json: records, exitCode: 0 }
  },
})

export const auditCommands: readonly Command[] = [verifyAuditLogs, showOperatorLog]

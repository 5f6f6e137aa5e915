import { z } from 'zod'
import { type Queryable, sql } from '../src/platform/db/db.ts'

const Row = z.object({
  action: z.string(),
  actor: z.object({ kind: z.string() }),
  details: z.record(z.string(), z.unknown()),
})

/** What the audit logs say of one thing, in the order in which it was written. */
export function auditedOf(db: Queryable, target: unknown): Promise<z.output<typeof Row>[]> {
  return db.many(
    Row,
    sql`select action, actor, details from audit_log where target = ${String(target)} order by sequence`,
  )
}

/** The same, of each record `<action> <who>`. */
export async function auditedActions(db: Queryable, target: unknown): Promise<string[]> {
  return (await auditedOf(db, target)).map(({ action, actor }) => `${action} ${actor.kind}`)
}

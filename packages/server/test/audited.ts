import { z } from 'zod'
import { type Queryable, sql } from '../src/platform/db/db.ts'

const Row = z.object({
  action: z.string(),
  actor: z.object({ kind: z.string() }),
  details: z.record(z.string(), z.unknown()),
})

/** The audit records of a target, in the order of writing. */
export function auditedOf(db: Queryable, target: unknown): Promise<z.output<typeof Row>[]> {
  return db.many(
    Row,
    sql`select action, actor, details from audit_log where target = ${String(target)} order by sequence`,
  )
}

/** The audit records of a target, each as `<action> <who>`. */
export async function auditedActions(db: Queryable, target: unknown): Promise<string[]> {
  return (await auditedOf(db, target)).map(({ action, actor }) => `${action} ${actor.kind}`)
}

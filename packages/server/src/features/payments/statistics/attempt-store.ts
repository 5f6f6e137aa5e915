import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { type Queryable, sql } from '../../../platform/db/db.ts'
import { deleteExpired, type Sweep } from '../../../platform/db/delete-expired.ts'

/** Challenges and refused credentials of a tenant in the minute that begins at `at`. */
export interface CountedAttempts extends Tenant {
  readonly at: Date
  readonly challenges: number
  readonly refused: number
}

/** Adds to the counts of these minutes, whose rows are locked in one order. Those of organisations that are deleted are left out. */
export async function addAttempts(db: Queryable, counted: readonly CountedAttempts[]): Promise<void> {
  await db.run(sql`
    insert into payment_attempts (organisation_id, environment, at, challenges, refused)
    select * from unnest(${counted.map((one) => one.organisationId)}::text[], ${counted.map((one) => one.environment)}::text[],
      ${counted.map((one) => one.at.toISOString())}::timestamptz[], ${counted.map((one) => one.challenges)}::bigint[],
      ${counted.map((one) => one.refused)}::bigint[]) as given (organisation_id, environment, at, challenges, refused)
    where exists (select from organisations o where o.id = given.organisation_id)
    order by organisation_id collate "C", environment collate "C", at
    on conflict (organisation_id, environment, at) do update
      set challenges = payment_attempts.challenges + excluded.challenges, refused = payment_attempts.refused + excluded.refused`)
}

const Sums = z.object({ challenges: z.bigint(), refused: z.bigint() })

/** Sums the counts of the minutes that begin within a period. */
export function sumAttempts(
  db: Queryable,
  tenant: Tenant,
  { from, to }: { readonly from: Date; readonly to: Date },
): Promise<z.output<typeof Sums>> {
  return db.one(
    Sums,
    sql`
    select coalesce(sum(challenges), 0)::bigint as challenges, coalesce(sum(refused), 0)::bigint as refused from payment_attempts
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}
      and at >= date_trunc('minute', ${from}::timestamptz) and at < ${to}`,
  )
}

/** Deletes the counts of minutes before an instant. */
export function deleteOldAttempts(sweep: Sweep, before: Date): Promise<number> {
  return deleteExpired(sweep, { from: sql`payment_attempts`, where: sql`at < ${before}`, orderBy: sql`at` })
}

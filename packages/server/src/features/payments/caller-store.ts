import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, sql } from '../../platform/db/db.ts'
import { deleteExpired, type Sweep } from '../../platform/db/delete-expired.ts'

const OldestRow = z.object({ oldest: z.date().nullable() })

/** A caller of one of the tenant's routes, and the limit on its requests since an instant. */
export interface CallerLimit {
  readonly ip: string
  readonly since: Date
  readonly now: Date
  readonly requestsMax: number
}

/**
 * Records a request of a caller, unless the caller already made `requestsMax` requests since `since`; then returns false. One
 * statement under the row's lock, so that parallel requests to any number of processes never exceed the limit.
 */
export async function noteCaller(
  db: Queryable,
  tenant: Tenant,
  { ip, since, now, requestsMax }: CallerLimit,
): Promise<boolean> {
  const noted = await db.run(sql`
    insert into challenge_callers as known (organisation_id, environment, ip, asked, last_asked_at)
    values (${tenant.organisationId}, ${tenant.environment}, ${ip}::inet, array[${now}::timestamptz], ${now})
    on conflict (organisation_id, environment, ip) do update
      set asked = array(select at from unnest(known.asked) at where at > ${since}) || excluded.asked, last_asked_at = excluded.last_asked_at
      where (select count(*) from unnest(known.asked) at where at > ${since}) < ${requestsMax}`)
  return noted === 1
}

/** Returns the time of the oldest request of a caller that still counts; undefined when none does. */
export async function findOldestRequest(
  db: Queryable,
  tenant: Tenant,
  { ip, since }: Pick<CallerLimit, 'ip' | 'since'>,
): Promise<Date | undefined> {
  const row = await db.one(
    OldestRow,
    sql`
    select min(at) as oldest from challenge_callers, unnest(asked) at
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and ip = ${ip}::inet and at > ${since}`,
  )
  return row.oldest ?? undefined
}

/** Deletes callers of any tenant that made no request since this instant. */
export function deleteQuietCallers(sweep: Sweep, since: Date): Promise<number> {
  return deleteExpired(sweep, {
    from: sql`challenge_callers`,
    where: sql`last_asked_at <= ${since}`,
    orderBy: sql`last_asked_at`,
  })
}

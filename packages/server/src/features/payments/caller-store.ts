import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, sql } from '../../platform/db/db.ts'

const AskedRow = z.object({ oldest: z.date().nullable() })

/** One caller of the tenant's, and how often he may ask since when. */
export interface CallerLimit {
  readonly ip: string
  readonly since: Date
  readonly now: Date
  readonly askedMax: number
}

/**
 * Notes that a caller asks, unless he asked `askedMax` times since then; false when he did. One statement under the row's lock, so
 * that no number of requests at once, to however many processes, is more than the limit.
 */
export async function noteCaller(
  db: Queryable,
  tenant: Tenant,
  { ip, since, now, askedMax }: CallerLimit,
): Promise<boolean> {
  const noted = await db.run(sql`
    insert into challenge_callers as known (organisation_id, environment, ip, asked, last_asked_at)
    values (${tenant.organisationId}, ${tenant.environment}, ${ip}::inet, array[${now}::timestamptz], ${now})
    on conflict (organisation_id, environment, ip) do update
      set asked = array(select at from unnest(known.asked) at where at > ${since}) || excluded.asked, last_asked_at = excluded.last_asked_at
      where (select count(*) from unnest(known.asked) at where at > ${since}) < ${askedMax}`)
  return noted === 1
}

/** The oldest of a caller's requests that still count; undefined when none does any more. */
export async function findOldestAsked(
  db: Queryable,
  tenant: Tenant,
  { ip, since }: Pick<CallerLimit, 'ip' | 'since'>,
): Promise<Date | undefined> {
  const row = await db.one(
    AskedRow,
    sql`
    select min(at) as oldest from challenge_callers, unnest(asked) at
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and ip = ${ip}::inet and at > ${since}`,
  )
  return row.oldest ?? undefined
}

/** Forgets callers who did not ask since then, of whomever. */
export function deleteQuietCallers(db: Queryable, since: Date): Promise<number> {
  return db.run(sql`delete from challenge_callers where last_asked_at <= ${since}`)
}

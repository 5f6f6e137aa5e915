import { z } from 'zod'
import { instantOf } from '../../../platform/clock.ts'
import type { Tenant } from '../../../platform/ctx.ts'
import { StoredBigInt } from '../../../platform/db/columns.ts'
import { type Db, type Queryable, type Sql, sql } from '../../../platform/db/db.ts'
import type { MasterWalletId } from '../../../platform/ids.ts'
import type { PolicyUsage, PolicyWindow } from './decide.ts'

const UsageRow = z.object({ perHour: StoredBigInt, perDay: StoredBigInt, perMonth: StoredBigInt })

/** A token of a wallet and all its children, and the subjects that do not count. */
export interface UsageQuestion {
  readonly masterWalletId: MasterWalletId
  readonly token: string
  readonly except: readonly string[]
}

export type Since = Readonly<Record<PolicyWindow, Date>>

const quarterMs = 900_000

/** The first quarter of an hour that is whole behind an instant. */
function nextQuarter(since: Date): Date {
  return instantOf((Math.floor(since.getTime() / quarterMs) + 1) * quarterMs)
}

/**
 * The used and reserved amounts since each instant, in the order of the questions. Whole quarters of an hour are summed from `policy_usage` and its changes, the quarter in
 * which each window begins from its movements: all in one statement, so that the sums are exact at its instant.
 */
export function sumUsages(
  db: Queryable,
  tenant: Tenant,
  questions: readonly UsageQuestion[],
  since: Since,
): Promise<PolicyUsage[]> {
  const first = {
    perHour: nextQuarter(since.perHour),
    perDay: nextQuarter(since.perDay),
    perMonth: nextQuarter(since.perMonth),
  }
  const own = sql`organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}
    and master_wallet_id = given.master_wallet_id and token = given.token`
  const excepted = questions.flatMap(({ except }, index) => except.map((subject) => ({ position: index + 1, subject })))
  const sumOf = (
    window: PolicyWindow,
    whole: Sql,
    less: Sql,
  ): Sql => sql`(coalesce(${whole}, 0) - coalesce(${less}, 0) + coalesce((
    select sum(atto_amount) from policy_reservations
    where ${own} and released_at is null and reserved_at > ${since[window]} and reserved_at < ${first[window]}), 0))::text`
  return db.many(
    UsageRow,
    sql`
    select ${sumOf('perHour', sql`whole.per_hour`, sql`less.per_hour`)} as per_hour, ${sumOf('perDay', sql`whole.per_day`, sql`less.per_day`)} as per_day,
      ${sumOf('perMonth', sql`whole.per_month`, sql`less.per_month`)} as per_month
    from unnest(${questions.map(({ masterWalletId }) => masterWalletId)}::text[], ${questions.map(({ token }) => token)}::text[])
      with ordinality as given (master_wallet_id, token, position)
    cross join lateral (
      select sum(atto_amount) filter (where at >= ${first.perHour}) as per_hour, sum(atto_amount) filter (where at >= ${first.perDay}) as per_day,
        sum(atto_amount) as per_month
      from (
        select at, atto_amount from policy_usage where ${own} and at >= ${first.perMonth}
        union all select at, atto_amount from policy_usage_changes where ${own} and at >= ${first.perMonth}
      ) as quarters
    ) as whole
    cross join lateral (
      select sum(atto_amount) filter (where reserved_at > ${since.perHour}) as per_hour, sum(atto_amount) filter (where reserved_at > ${since.perDay}) as per_day,
        sum(atto_amount) filter (where reserved_at > ${since.perMonth}) as per_month
      from policy_reservations
      where ${own} and released_at is null and subject_id in (
        select subject_id from unnest(${excepted.map(({ position }) => position)}::integer[], ${excepted.map(({ subject }) => subject)}::text[])
          as excepted (position, subject_id) where excepted.position = given.position)
    ) as less
    order by given.position`,
  )
}

/** The used and reserved amounts of one token since each instant. */
export async function sumUsage(
  db: Queryable,
  tenant: Tenant,
  question: UsageQuestion,
  since: Since,
): Promise<PolicyUsage> {
  const [usage] = await sumUsages(db, tenant, [question], since)
  if (usage === undefined) throw new Error('a usage is missing')
  return usage
}

/** Most changes that one statement adds up. */
export const addedMax = 10_000

/** Adds up to `addedMax` changes to the sums and deletes them. Returns the number of changes; fewer than `addedMax` if it left none that nobody has locked. */
export async function addUpUsage(db: Db): Promise<number> {
  const { changes } = await db.one(
    z.object({ changes: z.bigint().transform(Number) }),
    sql`
    with added as (
      delete from policy_usage_changes where ctid = any(array(select ctid from policy_usage_changes limit ${addedMax} for update skip locked)) returning *
    ), summed as (
      insert into policy_usage as known (master_wallet_id, token, at, organisation_id, environment, atto_amount)
      select master_wallet_id, token, at, organisation_id, environment, sum(atto_amount) from added
      group by master_wallet_id, token, at, organisation_id, environment order by master_wallet_id collate "C", token collate "C", at
      on conflict (master_wallet_id, token, at) do update set atto_amount = known.atto_amount + excluded.atto_amount
    )
    select count(*) as changes from added`,
  )
  return changes
}

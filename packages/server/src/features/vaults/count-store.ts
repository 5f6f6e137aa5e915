import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { type Db, type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { id } from '../../platform/ids.ts'

/** Up to this many vaults of a tenant, a recount reads every vault with its content; above it, the counts that triggers maintain. */
const recountedVaultsMax = 1_000

/** Selects the number of vaults of a kind. */
export function countingVaults(tenant: Tenant, countedAs: 'active' | 'persisted'): Sql {
  const counted = countedAs === 'active' ? sql`active` : sql`persisted`
  return unlessMany(
    tenant,
    sql`select count(*) from vaults where ${of(tenant)} and counted_as = ${countedAs}`,
    sql`select ${counted} from ${countsOf(tenant)} as counts`,
  )
}

/** Selects the sum of the bytes of all documents, files and emitted events. */
export function summingBytes(tenant: Tenant): Sql {
  return unlessMany(
    tenant,
    sql`
    select coalesce(sum(contents.bytes), 0)::bigint from vaults
    cross join lateral (
      select coalesce((select sum(size) from vault_documents where vault_id = vaults.id), 0)
        + coalesce((select sum(size) from vault_files where vault_id = vaults.id), 0)
        + coalesce((select sum(size) from vault_events where vault_id = vaults.id), 0) as bytes
    ) as contents
    where ${of(tenant)}`,
    sql`select bytes from ${countsOf(tenant)} as counts`,
  )
}

/** Selects the numbers from the vaults themselves, or from their maintained counts for a tenant with many vaults. */
function unlessMany(tenant: Tenant, vaults: Sql, counts: Sql): Sql {
  const { organisationId, environment } = tenant
  // `between`, with this order, leaves only the index of a tenant's vaults to choose. With `=`, vaults of others may be read in the order of ids.
  return sql`
    select case when (
      select count(*) from (
        select from vaults where organisation_id between ${organisationId} and ${organisationId} and environment between ${environment} and ${environment}
        order by organisation_id, environment, id desc limit ${recountedVaultsMax + 1}
      ) as some_of_them
    ) > ${recountedVaultsMax} then (${counts}) else (${vaults}) end`
}

function of({ organisationId, environment }: Tenant): Sql {
  return sql`organisation_id = ${organisationId} and environment = ${environment}`
}

/** A tenant's counts at the statement's instant: those that are added up, and the changes since. */
function countsOf(tenant: Tenant): Sql {
  return sql`(
    select coalesce(sum(active), 0)::bigint as active, coalesce(sum(persisted), 0)::bigint as persisted, coalesce(sum(bytes), 0)::bigint as bytes
    from (
      select active, persisted, bytes from vault_counts where ${of(tenant)}
      union all select active, persisted, bytes from vault_count_changes where ${of(tenant)}
    ) as parts
  )`
}

/** Most changes that one statement adds up. */
export const addedMax = 10_000

/** Adds up at most `addedMax` changes and deletes them. Returns the number of changes; fewer than `addedMax` if it left none that nobody has locked. */
export async function addUpChanges(db: Db): Promise<number> {
  const { changes } = await db.one(
    z.object({ changes: z.bigint().transform(Number) }),
    sql`
    with added as (
      delete from vault_count_changes where ctid = any(array(select ctid from vault_count_changes limit ${addedMax} for update skip locked)) returning *
    ), summed as (
      insert into vault_counts as counts (organisation_id, environment, active, persisted, bytes)
      select organisation_id, environment, sum(active), sum(persisted), sum(bytes) from added
      group by organisation_id, environment order by organisation_id collate "C", environment collate "C"
      on conflict (organisation_id, environment) do update
        set active = counts.active + excluded.active, persisted = counts.persisted + excluded.persisted, bytes = counts.bytes + excluded.bytes
    )
    select count(*) as changes from added`,
  )
  return changes
}

const TenantRow = z.object({ organisationId: id('org'), environment: z.enum(['test', 'live']) })

/** Counts that were compared with the vaults, and whether they were wrong; or the error of the comparison. */
export interface Checked {
  readonly tenant: Tenant
  readonly wasWrong: boolean
  readonly error?: unknown
}

/**
 * Compares the counts that were last compared before `before`, the oldest first, with the vaults, and corrects them by a change. The row stays
 * locked, so that of two processes that compare only one corrects. Counts whose comparison fails are due again as late as others, so that they delay
 * none. Returns undefined if none are due.
 */
export async function checkCounts(
  db: Db,
  { now, before }: { readonly now: Date; readonly before: Date },
): Promise<Checked | undefined> {
  let tenant: Tenant | undefined
  try {
    return await db.tx(async (tx) => {
      tenant = await tx.maybeOne(
        TenantRow,
        sql`
        select organisation_id, environment from vault_counts where checked_at < ${before} order by checked_at limit 1 for update skip locked`,
      )
      return tenant && { tenant, wasWrong: await correctCounts(tx, tenant, now) }
    })
  } catch (error) {
    if (tenant === undefined) throw error
    await markChecked(db, tenant, now)
    return { tenant, wasWrong: false, error }
  }
}

async function correctCounts(tx: Tx, tenant: Tenant, now: Date): Promise<boolean> {
  const { organisationId, environment } = tenant
  const corrected = await tx.run(sql`
      insert into vault_count_changes (organisation_id, environment, active, persisted, bytes)
      select ${organisationId}, ${environment}, there.active - counts.active, there.persisted - counts.persisted, there.bytes - counts.bytes
      from ${countsOf(tenant)} as counts, (
        select count(*) filter (where counted_as = 'active') as active, count(*) filter (where counted_as = 'persisted') as persisted,
          coalesce(sum(bytes), 0)::bigint as bytes
        from vaults where ${of(tenant)}
      ) as there
      where (there.active, there.persisted, there.bytes) <> (counts.active, counts.persisted, counts.bytes)`)
  await markChecked(tx, tenant, now)
  return corrected > 0
}

async function markChecked(db: Queryable, tenant: Tenant, now: Date): Promise<void> {
  await db.run(sql`update vault_counts set checked_at = ${now} where ${of(tenant)}`)
}

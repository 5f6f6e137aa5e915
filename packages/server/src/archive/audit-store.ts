import type { Db } from '../platform/db/db.ts'
import { plain } from '../platform/db/partitions.ts'

/**
 * Stores, for each audit log, the consecutive runs of records in a partition, so that the chain can be verified across them. A log has several runs
 * in a month if the clocks of two processes differed at the end of the month.
 */
export async function noteRuns(db: Db, partition: string): Promise<void> {
  await db.tx((tx) => tx.run(plain(runsOf(partition))), { takesAnyTime: true })
}

function runsOf(partition: string): string {
  return `
    with ends as (
      select * from (
        select organisation_id, sequence, previous_hash, hash, lag(sequence) over own is distinct from sequence - 1 as is_first,
          lead(sequence) over own is distinct from sequence + 1 as is_last
        from ${partition} window own as (partition by organisation_id order by sequence)
      ) as record where is_first or is_last
    ),
    firsts as (select *, row_number() over (partition by organisation_id order by sequence) as run from ends where is_first),
    lasts as (select *, row_number() over (partition by organisation_id order by sequence) as run from ends where is_last)
    insert into archived_audit_runs (organisation_id, first_sequence, last_sequence, previous_hash, last_hash, partition)
    select organisation_id, firsts.sequence, lasts.sequence, firsts.previous_hash, lasts.hash, '${partition}'
    from firsts join lasts using (organisation_id, run)`
}

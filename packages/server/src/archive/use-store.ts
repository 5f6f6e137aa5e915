import { z } from 'zod'
import { instantOf } from '../platform/clock.ts'
import { type Queryable, type Sql, sql } from '../platform/db/db.ts'
import { idLagMsMax } from '../platform/db/page.ts'
import { type Partition, type PartitionedTable, plain } from '../platform/db/partitions.ts'

/** A possible use of the rows of a partition: its name, and the statement that returns whether there is one. */
type Use = readonly [reason: string, is: Sql]

/**
 * Returns why the rows of a partition are still needed; undefined if they are not. It also runs under a table lock, so each condition reads open rows
 * only.
 */
export async function findUse(
  db: Queryable,
  { table }: Pick<PartitionedTable, 'table'>,
  partition: Partition,
): Promise<string | undefined> {
  for (const [reason, is] of usesOf[table](partition)) {
    const row = await db.one(z.object({ is: z.boolean() }), is)
    if (row.is) return reason
  }
  return undefined
}

const usesOf: Readonly<Record<PartitionedTable['table'], (partition: Partition) => readonly Use[]>> = {
  webhook_attempts: () => [],
  audit_log: () => [],
  webhook_deliveries: ({ name }) => [
    ['a delivery is pending', plain(`select exists (select from ${name} where status = 'pending') as is`)],
  ],
  events: ({ from = '', until = '' }) => [
    [
      'a delivery is pending',
      sql`
      select exists (select from webhook_deliveries where status = 'pending' and event_id >= ${from} and event_id < ${until})
        or exists (select from events_due where event_id >= ${from} and event_id < ${until})
        or exists (select from events_postponed where event_id >= ${from} and event_id < ${until}) as is`,
    ],
  ],
  payments: usesOfPayments,
}

/** Rows that can still change a payment of the partition or read it, and counts that no rollup has yet. */
function usesOfPayments({ name, from = '', until = '', fromAt, untilAt }: Partition): readonly Use[] {
  const own = (condition: string): Sql => plain(`select exists (select from ${name} where ${condition}) as is`)
  const ended = `status in ('settlement_failed', 'voided')`
  return [
    ['a payment is open', own(`status in ('verified', 'settling')`)],
    ['a payment is still checked', own('check_at is not null')],
    ['a session is to be revoked', own(`session_id is not null and ${ended} and not session_revoked`)],
    [
      'a session is open',
      sql`
      select exists (
        select from (select payment_id from sessions where expires_at > now() and revoked_at is null offset 0) as open
        where payment_id >= ${from} and payment_id < ${until}
      ) as is`,
    ],
    [
      'a refund is pending',
      sql`
      select exists (select from payment_refunds where status = 'pending' and payment_id >= ${from} and payment_id < ${until}) as is`,
    ],
    [
      'a relay is open',
      sql`
      select exists (
        select from relays where check_at is not null and purpose = 'payments' and subject_id >= ${from} and subject_id < ${until}
      ) as is`,
    ],
    ['payments are not counted yet', isUncounted({ fromAt, untilAt })],
  ]
}

/** Whether a rollup still has to count payments of a period. A payment gets its id and its time within a minute. */
function isUncounted({ fromAt, untilAt }: Pick<Partition, 'fromAt' | 'untilAt'>): Sql {
  const first = instantOf((fromAt?.getTime() ?? 0) - idLagMsMax)
  const end = instantOf((untilAt?.getTime() ?? 0) + idLagMsMax)
  return sql`
      select exists (select from payment_rollup_state where sealed_until < ${end})
        or exists (select from payment_rollup_changes where at >= ${first} and at < ${end}) as is`
}

import { z } from 'zod'
import { type Queryable, type Sql, sql } from '../platform/db/db.ts'

const Depth = z.object({
  queue: z.string(),
  network: z.string(),
  depth: z.bigint().transform(Number),
  ageSeconds: z.number(),
})
export type Depth = z.output<typeof Depth>

/** Longest queue that is counted to its end, so that a read takes the same time whatever waits. */
const depthMax = 10_000

/** The purpose of the settler's transactions: they carry relays. All others are of wallets. */
const settlerPurpose = 'relays'

/** Counts the rows of a queue and returns the age of the oldest; `since` is null where its age is not known. */
function depthOf(queue: string, rows: Sql, network: Sql = sql`''`): Sql {
  return sql`
    select ${queue}::text as queue, ${network} as network, count(*) as depth,
      greatest(coalesce(extract(epoch from clock_timestamp() - min(since)), 0), 0)::float8 as age_seconds
    from (${rows} limit ${depthMax}) as waiting group by 2`
}

/** Events without all of their deliveries. */
const waitingEvents = sql`
  select created_at as since from (
    select event_id from events_due union all select event_id from events_postponed) as due join events on events.id = event_id`

/**
 * Deleted organisations whose managed wallets received a whole token or more since: less, and money that screening flagged or froze, could be a stranger's way
 * to raise an alarm. A scrape reads a limited number of rows, those of the greatest deposits, so that dust hides none.
 */
const lateDeposits = sql`
  select min(deposit.created_at) as since from (
    select organisation_id, transaction_id from late_deposits order by tokens desc nulls first limit ${depthMax}) as late
  join organisations on organisations.id = late.organisation_id join wallet_transactions as deposit on deposit.id = late.transaction_id
  where organisations.deleted_at is not null and deposit.status <> 'withdrawn' and deposit.aml_status <> 'flagged'
  group by organisations.id
  having sum((deposit.raw_amount - deposit.frozen_raw_amount) / power(10::numeric, deposit.decimals)) >= 1`

/**
 * Returns what waits in each queue: payments that are not settled or void, relays that no transaction carries, transactions of the settlers and
 * of wallets that are not final, events without deliveries, deliveries that are due, files to delete, transfers that the operator must investigate, approved payments that were not used and are to be ended, and deleted
 * organisations that received live money. An empty queue of a network has no row.
 */
export function listDepths(db: Queryable): Promise<Depth[]> {
  return db.many(
    Depth,
    sql`
    ${depthOf('payments', sql`select network, created_at as since from payments where status in ('verified', 'settling')`, sql`network`)} union all
    ${depthOf('relays', sql`select network, created_at as since from relays where state = 'waiting'`, sql`network`)} union all
    ${depthOf('settler-transactions', sql`select network, created_at as since from chain_transactions where status <> 'final' and purpose = ${settlerPurpose}`, sql`network`)} union all
    ${depthOf('wallet-transactions', sql`select network, created_at as since from chain_transactions where status <> 'final' and purpose <> ${settlerPurpose}`, sql`network`)} union all
    ${depthOf('events', waitingEvents)} union all
    ${depthOf('webhooks', sql`select look_at as since from webhook_queues where look_at <= clock_timestamp()`)} union all
    ${depthOf('files', sql`select due_at as since from blob_deletions where due_at > '-infinity' and due_at <= clock_timestamp()`)} union all
    ${depthOf('unknown-transfers', sql`select from_network, unknown_at as since from transfers where unknown_at is not null and ended_at is null`, sql`from_network`)} union all
    ${depthOf('unused-payments', sql`select pay_until as since from wallet_payments where draft is null and pay_until <= clock_timestamp()`)} union all
    ${depthOf('deleted-organisations', lateDeposits)}`,
  )
}

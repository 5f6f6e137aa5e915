import { networks } from '@purser/protocol'
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

const columns = sql`
  count(*) as depth, greatest(coalesce(extract(epoch from clock_timestamp() - min(since)), 0), 0)::float8 as age_seconds`

/** Counts the rows of a queue, the first of `inOrder`, and returns the age of the oldest; `since` is null where its age is not known. */
function depthOf(queue: string, inOrder: Sql): Sql {
  return sql`
    select ${queue}::text as queue, '' as network, ${columns} from (${inOrder} limit ${depthMax}) as waiting having count(*) > 0`
}

/**
 * As `depthOf`, for each network alone, so that a long queue of one hides no other. `inOrder` takes the rows of `named.network` in the order of an
 * index.
 */
function depthsOf(queue: string, inOrder: Sql): Sql {
  return sql`
    select ${queue}::text as queue, named.network, counted.depth, counted.age_seconds
    from unnest(${networks.map(({ name }) => name)}::text[]) as named (network)
    cross join lateral (select ${columns} from (${inOrder} limit ${depthMax}) as waiting) as counted where counted.depth > 0`
}

/**
 * Open payments, in no order: of more than 10,000 any are counted, so that one network may hide another. Months of payments have no index for it, because
 * each index counts toward the locks of the server; what delays a payment is in the queues of relays and transactions.
 */
const openPayments = sql`
  select 'payments'::text as queue, network, ${columns} from (
    select network, created_at as since from payments where status in ('verified', 'settling') limit ${depthMax}) as waiting group by network`

/** Events without all of their deliveries. Their ids are in the order of time. */
const waitingEvents = sql`
  select created_at as since from (
    select event_id from (select event_id from events_due union all select event_id from events_postponed) as due
    order by event_id limit ${depthMax}) as due join events on events.id = event_id`

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
 * organisations that received live money. Transactions for `relays` are of the settlers, all others of wallets. An empty queue of a network has no row.
 */
export function listDepths(db: Queryable): Promise<Depth[]> {
  return db.many(
    Depth,
    sql`
    ${openPayments} union all
    ${depthsOf('relays', sql`select created_at as since from relays where network = named.network and state = 'waiting' and created_at > '-infinity' order by created_at`)} union all
    ${depthsOf('settler-transactions', sql`select created_at as since from chain_transactions where network = named.network and status <> 'final' and purpose = 'relays' order by created_at`)} union all
    ${depthsOf('wallet-transactions', sql`select created_at as since from chain_transactions where network = named.network and status <> 'final' and purpose <> 'relays' order by created_at`)} union all
    ${depthOf('events', waitingEvents)} union all
    ${depthOf('webhooks', sql`select look_at as since from webhook_queues where look_at <= clock_timestamp() order by look_at`)} union all
    ${depthOf('files', sql`select due_at as since from blob_deletions where due_at > '-infinity' and due_at <= clock_timestamp() order by due_at`)} union all
    ${depthsOf('unknown-transfers', sql`select unknown_at as since from transfers where from_network = named.network and unknown_at is not null and ended_at is null order by unknown_at`)} union all
    ${depthOf('unused-payments', sql`select pay_until as since from wallet_payments where draft is null and pay_until <= clock_timestamp() order by pay_until`)} union all
    ${depthOf('deleted-organisations', lateDeposits)}`,
  )
}

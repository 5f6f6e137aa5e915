import { z } from 'zod'
import { type Queryable, sql } from '../src/platform/db/db.ts'

/** When the settlement of a payment was requested, and when the transaction that carries it was planned: what is between is its time in the queue. */
export interface Queued {
  readonly requestedAt: Date
  readonly plannedAt: Date
}

const QueuedRow = z.object({ requestedAt: z.date(), plannedAt: z.date() })

/** The time of a settled payment in the queue. */
export function queuedOf(db: Queryable, paymentId: string): Promise<Queued> {
  return db.one(
    QueuedRow,
    sql`
    select payment.settling_at as requested_at, carrier.created_at as planned_at from payments as payment
    join relays as relay on relay.purpose = 'payments' and relay.subject_id = payment.id
    join chain_transactions as carrier on carrier.id = relay.transaction_id where payment.id = ${paymentId}`,
  )
}

/** How many other payments ended, or were taken into a transaction, while this one was in the queue. */
export async function handledDuring(db: Queryable, paymentId: string, others: readonly string[]): Promise<number> {
  const { requestedAt, plannedAt } = await queuedOf(db, paymentId)
  const { count } = await db.one(
    z.object({ count: z.bigint() }),
    sql`
    select count(*) as count from unnest(${others}::text[]) as other (id) where exists (
      select from events where type = 'payment.settlement_failed' and payload ->> 'paymentId' = other.id
        and created_at between ${requestedAt} and ${plannedAt})
      or exists (
      select from relays as relay join chain_transactions as carrier on carrier.id = relay.transaction_id
      where relay.purpose = 'payments' and relay.subject_id = other.id and carrier.created_at between ${requestedAt} and ${plannedAt}
        and carrier.id <> (select transaction_id from relays where purpose = 'payments' and subject_id = ${paymentId}))`,
  )
  return Number(count)
}

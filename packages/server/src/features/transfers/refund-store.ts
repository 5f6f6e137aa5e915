import { z } from 'zod'
import { sql, type Tx } from '../../platform/db/db.ts'
import type { EventId } from '../../platform/ids.ts'
import type { TransferId, TransferRow } from './store.ts'

/** The time of the partner's first failure report; now if this is the first. The caller has locked the row. */
export async function markFailing(tx: Tx, transferId: TransferId, now: Date): Promise<Date> {
  const row = await tx.one(
    z.object({ failingSince: z.date() }),
    sql`
    update transfers set failing_since = coalesce(failing_since, ${now}) where id = ${transferId} returning failing_since`,
  )
  return row.failingSince
}

/** Marks that the money is refunded; the transfer then ends. */
export async function markRefunded(tx: Tx, transferId: TransferId, refund: Refund): Promise<void> {
  await tx.run(sql`
    update transfers set refund_tx_hash = ${refund.hash}, refunded_at = ${refund.now} where id = ${transferId} and ended_at is null`)
}

export interface Refund {
  readonly hash: string
  readonly now: Date
}

/** Stores the event that reported the overdue refund. */
export async function markRefundOverdue(tx: Tx, transferId: TransferId, eventId: EventId): Promise<void> {
  await tx.run(sql`update transfers set refund_overdue_event_id = ${eventId} where id = ${transferId}`)
}

/**
 * The amounts of other transfers of this account and token that a transaction refunded. Until the database transaction ends, no other
 * transfer can use that refund.
 */
export async function listPaidBack(
  tx: Tx,
  { id, organisationId, environment, fromNetwork, fromAddress, fromToken }: TransferRow,
  hash: string,
): Promise<readonly bigint[]> {
  const plain = hash.toLowerCase()
  await tx.run(sql`select pg_advisory_xact_lock(hashtextextended(${`refund:${fromNetwork}/${plain}`}, 0))`)
  const rows = await tx.many(
    z.object({ raw: z.string().transform((text) => BigInt(text)) }),
    sql`
    select raw_amount::text as raw from transfers
    where lower(refund_tx_hash) = ${plain} and organisation_id = ${organisationId} and environment = ${environment} and from_network = ${fromNetwork} and from_address = ${fromAddress} and from_token = ${fromToken}
      and id <> ${id}`,
  )
  return rows.map(({ raw }) => raw)
}

/** The amounts of other open transfers of this account, token and partner that the partner reports as failed, newest first. */
export async function listFailing(
  tx: Tx,
  { id, organisationId, environment, fromNetwork, fromAddress, fromToken, partner }: TransferRow,
  limit: number,
): Promise<readonly bigint[]> {
  const rows = await tx.many(
    z.object({ raw: z.string().transform((text) => BigInt(text)) }),
    sql`
    select raw_amount::text as raw from transfers
    where ended_at is null and failing_since is not null and organisation_id = ${organisationId} and environment = ${environment}
      and from_network = ${fromNetwork} and from_address = ${fromAddress} and from_token = ${fromToken} and partner = ${partner} and id <> ${id}
    order by id desc limit ${limit}`,
  )
  return rows.map(({ raw }) => raw)
}

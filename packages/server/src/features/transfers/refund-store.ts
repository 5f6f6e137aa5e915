import { z } from 'zod'
import { sql, type Tx } from '../../platform/db/db.ts'
import type { EventId } from '../../platform/ids.ts'
import type { TransferId } from './store.ts'

/** Since when the partner fails; now where it says so for the first time. The caller holds the row. */
export async function markFailing(tx: Tx, transferId: TransferId, now: Date): Promise<Date> {
  const row = await tx.one(
    z.object({ failingSince: z.date() }),
    sql`
    update transfers set failing_since = coalesce(failing_since, ${now}) where id = ${transferId} returning failing_since`,
  )
  return row.failingSince
}

/** The money is back, and the transfer is about to end with that. */
export async function markRefunded(tx: Tx, transferId: TransferId, refund: Refund): Promise<void> {
  await tx.run(sql`
    update transfers set refund_tx_hash = ${refund.hash ?? null}, refunded_at = ${refund.now} where id = ${transferId} and ended_at is null`)
}

export interface Refund {
  readonly hash: string | undefined
  readonly now: Date
}

/** This event reported that the refund is overdue. */
export async function markRefundOverdue(tx: Tx, transferId: TransferId, eventId: EventId): Promise<void> {
  await tx.run(sql`update transfers set refund_overdue_event_id = ${eventId} where id = ${transferId}`)
}

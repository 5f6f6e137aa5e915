import { z } from 'zod'
import { type Queryable, sql } from '../../platform/db/db.ts'
import { id } from '../../platform/ids.ts'
import { isBack } from './ending.ts'
import type { TransferId } from './store.ts'

/** How a transfer ended for good. */
export interface TransferOutcome {
  /** Its money arrived. */
  readonly isDelivered: boolean
  /** Its money is where it was. Neither: it left, and was not received. */
  readonly isBack: boolean
  readonly txHash: string | null
}

const EndRow = z.object({
  id: id('wtx'),
  status: z.enum(['confirmed', 'failed']),
  reason: z.string().nullable(),
  txHash: z.string().nullable(),
})

/** Of these transfers, of any tenant, those that have ended for good; a block that shows one and may be undone ends nothing. */
export async function listTransferEnds(
  db: Queryable,
  transferIds: readonly TransferId[],
): Promise<ReadonlyMap<TransferId, TransferOutcome>> {
  const rows = await db.many(
    EndRow,
    sql`
    select id, status, reason, tx_hash from transfers where id = any(${transferIds}::text[]) and ended_at is not null`,
  )
  return new Map(
    rows.map((row) => [row.id, { isDelivered: row.status === 'confirmed', isBack: isBack(row), txHash: row.txHash }]),
  )
}

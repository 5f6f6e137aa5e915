import { z } from 'zod'
import { type Queryable, sql } from '../../platform/db/db.ts'
import { id } from '../../platform/ids.ts'
import { isBack } from './ending.ts'
import type { TransferId } from './store.ts'

/** How a transfer ended. */
export interface TransferOutcome {
  /** Its money arrived. */
  readonly isDelivered: boolean
  /** Its money is back in the wallet. If neither is set, the money left and was not received. */
  readonly isBack: boolean
  readonly txHash: string | null
}

const EndRow = z.object({
  id: id('wtx'),
  status: z.enum(['confirmed', 'failed']),
  reason: z.string().nullable(),
  txHash: z.string().nullable(),
})

/** The transfers, of any tenant, that have ended. A transfer in a block that may be reorganized has not ended. */
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

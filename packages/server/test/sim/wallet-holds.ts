import { z } from 'zod'
import { type Db, sql } from '../../src/platform/db/db.ts'
import { Violation } from './violation.ts'
import type { Inflow } from './wallet-model.ts'

const Raw = z.string().transform((text) => BigInt(text))

const Row = z.object({ walletId: z.string(), sender: z.string(), rawAmount: Raw, rawKept: Raw })

/**
 * Checks that the service keeps at least the booked money of listed and unscreened senders on hold, at each wallet. It finds an amount that is
 * released wrongly in the round in which that happens; the chain shows it only if the rest of the wallet’s money leaves too.
 */
export async function checkHolds(db: Db, inflows: readonly Inflow[]): Promise<void> {
  const rows = await db.many(
    Row,
    sql`select wallet_id, lower(from_address) as sender, raw_amount::text,
      (case when aml_status = 'pending' and on_hold then raw_amount else frozen_raw_amount end)::text as raw_kept
      from wallet_transactions where direction = 'in' and status <> 'withdrawn'`,
  )
  const dirty = new Set(
    inflows.flatMap(({ wallet, sender, isDirty }) => (isDirty ? [`${wallet.id} ${sender.toLowerCase()}`] : [])),
  )
  for (const [walletId, own] of Map.groupBy(rows, (row) => row.walletId)) {
    const kept = own.reduce((sum, { rawKept }) => sum + rawKept, 0n)
    const owed = own.reduce((sum, { sender, rawAmount }) => {
      return dirty.has(`${walletId} ${sender}`) ? sum + rawAmount : sum
    }, 0n)
    if (kept < owed) throw new Violation(`${walletId} keeps ${kept} back, and ${owed} came from listed senders`)
  }
}

import { z } from 'zod'
import { type Db, sql } from '../../src/platform/db/db.ts'

/**
 * When work is due next, according to the rows; null for never. A transaction that no block has yet is due at once: a jump in time would let the
 * authorization in it expire, and an honest payment would end without its money.
 */
export async function nextDue(db: Db): Promise<Date | null> {
  const { at } = await db.one(
    z.object({ at: z.date().nullable() }),
    sql`select least((select min(check_at) from relays where check_at is not null), (select min(check_at) from payments where check_at is not null),
      (select min(next_attempt_at) from relays where state = 'waiting'), (select min(due_at) from relay_turns),
      (select min(created_at) from chain_transactions where status in ('planned', 'sent'))) as at`,
  )
  return at
}

/** Whether no work is open. */
export async function isOver(db: Db): Promise<boolean> {
  const { open } = await db.one(
    z.object({ open: z.boolean() }),
    sql`select exists (select from payments where status in ('verified', 'settling') or check_at is not null)
      or exists (select from relays where check_at is not null or state in ('waiting', 'included'))
      or exists (select from sweep_transfers where status not in ('swept', 'failed'))
      or exists (select from chain_transactions where status <> 'final') as open`,
  )
  return !open
}

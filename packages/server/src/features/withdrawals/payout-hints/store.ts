import { type Queryable, sql } from '../../../platform/db/db.ts'
import { deleteExpired, type Sweep } from '../../../platform/db/delete-expired.ts'
import { mayChange } from '../withdraw/store.ts'

/** A payout, by partner and id. Messages of partners do not name a tenant. */
export interface PayoutHint {
  readonly partner: string
  readonly payoutId: string
}

/** Stores that there is news of a payout, and makes its withdrawal due unless nothing can change it; a repeat updates the time. */
export async function upsertHint(db: Queryable, { partner, payoutId }: PayoutHint, heardAt: Date): Promise<void> {
  await db.run(sql`
    with due as (
      update withdrawals set next_look_at = least(next_look_at, ${heardAt})
      where partner = ${partner} and payout_id = ${payoutId} and (next_look_at is not null or ${mayChange}))
    insert into payout_hints (partner, payout_id, heard_at) values (${partner}, ${payoutId}, ${heardAt})
    on conflict (partner, payout_id) do update set heard_at = greatest(payout_hints.heard_at, excluded.heard_at)`)
}

/** Deletes hints that are older than this; returns how many. */
export function deleteHintsBefore(sweep: Sweep, before: Date): Promise<number> {
  return deleteExpired(sweep, { from: sql`payout_hints`, where: sql`heard_at < ${before}`, orderBy: sql`heard_at` })
}

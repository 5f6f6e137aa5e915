import { type Queryable, sql } from '../../../platform/db/db.ts'

/** A payout at a partner of the deployment's. It belongs to no tenant yet: a partner's message names none. */
export interface PayoutHint {
  readonly partner: string
  readonly payoutId: string
}

/** Remembers that there is news of a payout; heard again, it is the same news, and newer. */
export async function upsertHint(db: Queryable, { partner, payoutId }: PayoutHint, heardAt: Date): Promise<void> {
  await db.run(sql`
    insert into payout_hints (partner, payout_id, heard_at) values (${partner}, ${payoutId}, ${heardAt})
    on conflict (partner, payout_id) do update set heard_at = greatest(payout_hints.heard_at, excluded.heard_at)`)
}

/** Forgets hints that are older than this; answers how many. */
export function deleteHintsBefore(db: Queryable, before: Date): Promise<number> {
  return db.run(sql`delete from payout_hints where heard_at < ${before}`)
}

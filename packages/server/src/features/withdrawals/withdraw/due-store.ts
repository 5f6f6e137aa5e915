import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { type Queryable, type Sql, sql } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'
import type { WithdrawalId } from './store.ts'

const DueRow = z.object({ id: id('wdr'), organisationId: id('org'), environment: z.enum(['test', 'live']) })
export type DueRow = z.output<typeof DueRow>

/** A condition: whether any withdrawal is due for a poll. A hint makes its withdrawal due when it comes. */
export function isAnyDue(now: Date): Sql {
  return sql`(select next_look_at from withdrawals where next_look_at <= ${now} order by next_look_at limit 1) is not null`
}

/**
 * Withdrawals that are due for a poll, or that have a hint from their partner; postponed until `until`, so that one that fails does not
 * delay the others.
 */
export function takeDue(
  db: Queryable,
  { now, until, most }: { readonly now: Date; readonly until: Date; readonly most: number },
): Promise<DueRow[]> {
  return db.many(
    DueRow,
    sql`
    update withdrawals set next_look_at = ${until} where id in (
      select w.id from withdrawals w left join payout_hints h on h.partner = w.partner and h.payout_id = w.payout_id
      where w.next_look_at <= ${now} or (h.payout_id is not null and w.next_look_at is not null)
      order by w.next_look_at limit ${most} for update of w skip locked)
    returning id, organisation_id, environment`,
  )
}

/** Sets when a withdrawal is due next (null: never): at once if a hint came since its payout was read. */
export async function setNextPoll(
  db: Queryable,
  tenant: Tenant,
  withdrawalId: WithdrawalId,
  nextLookAt: Date | null,
): Promise<void> {
  await db.run(sql`
    update withdrawals w set next_look_at = case when ${nextLookAt}::timestamptz is not null then least(${nextLookAt}::timestamptz,
      (select h.heard_at from payout_hints h where h.partner = w.partner and h.payout_id = w.payout_id)) end
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${withdrawalId}`)
}

/** Deletes a hint from before the payout was read; a newer one stays. */
export async function deleteHint(
  db: Queryable,
  { partner, payoutId }: { readonly partner: string; readonly payoutId: string },
  readAt: Date,
): Promise<void> {
  await db.run(sql`
    delete from payout_hints where partner = ${partner} and payout_id = ${payoutId} and heard_at <= ${readAt}`)
}

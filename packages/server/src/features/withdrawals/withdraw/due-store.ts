import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'
import { type DueCursors, listDueChecks } from '../../plans/index.ts'
import type { WithdrawalId } from './store.ts'

/** The source that the next step of a withdrawal waits for: a network until its tokens are sent, then a partner. Migration 0246 indexes it. */
const sourceOf = sql`case when transfer_id is null then 'step ' || network else 'status ' || partner || ' ' || environment end`

const DueRow = z.object({
  id: id('wdr'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  source: z.string(),
})
export type DueRow = z.output<typeof DueRow>

/** A condition: whether any withdrawal is due for a poll. A hint makes its withdrawal due when it comes. */
export function isAnyDue(now: Date): Sql {
  return sql`(select next_look_at from withdrawals where next_look_at <= ${now} order by next_look_at limit 1) is not null`
}

/** Most withdrawals of one source that a list returns: one for each share owner that a look-up reaches. */
const perSourceMax = 200

/**
 * Withdrawals that are due for a poll, of each source at most two hundred, shared equally by the owners: a partner or network that does not
 * answer hides no withdrawal of others. Changes none of them: `takeDue` takes one when its poll begins. The transaction must read in order.
 */
export async function listDue(tx: Tx, now: Date, cursors: DueCursors): Promise<DueRow[]> {
  const table = sql`(
    select id, organisation_id, next_look_at as check_at, ${sourceOf} as network from withdrawals where next_look_at is not null)`
  const dueIds: string[] = []
  for (const network of await listDueSources(tx, now))
    dueIds.push(
      ...(await listDueChecks(tx, { table, network, now: sql`${now}::timestamptz`, most: perSourceMax, cursors })),
    )
  if (dueIds.length === 0) return []
  return tx.many(
    DueRow,
    sql`select id, organisation_id, environment, ${sourceOf} as source from withdrawals where id = any(${dueIds}::text[])
      order by array_position(${dueIds}::text[], id)`,
  )
}

async function listDueSources(tx: Tx, now: Date): Promise<string[]> {
  const rows = await tx.many(
    z.object({ source: z.string() }),
    sql`
    with recursive sources as (
      (select ${sourceOf} as source from withdrawals where next_look_at is not null order by 1 limit 1)
      union all
      select (select ${sourceOf} from withdrawals where next_look_at is not null and ${sourceOf} > s.source order by 1 limit 1)
      from sources s where s.source is not null
    )
    select s.source from sources s where s.source is not null and (
      select next_look_at from withdrawals where ${sourceOf} = s.source and next_look_at is not null and next_look_at <= ${now}
      order by next_look_at limit 1) is not null`,
  )
  return rows.map(({ source }) => source)
}

/**
 * Postpones a due withdrawal until `until`, so that another process continues it if this one dies. Returns false if it is not due any more,
 * because another process has taken it.
 */
export async function takeDue(
  db: Queryable,
  tenant: Tenant,
  withdrawalId: WithdrawalId,
  { now, until }: { readonly now: Date; readonly until: Date },
): Promise<boolean> {
  const changed = await db.run(sql`
    update withdrawals set next_look_at = ${until}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${withdrawalId} and next_look_at <= ${now}`)
  return changed === 1
}

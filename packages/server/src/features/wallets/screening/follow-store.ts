import { z } from 'zod'
import { type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'

/** The parts of a comparison, in order: rows of addresses that differ, and then pending rows. */
export const followStages = ['senders', 'addresses', 'pending-deposits', 'pending-wallets'] as const

/** The last row that a stage has visited, in the order of its index. Both are initially empty. */
const Place = z.object({ afterValue: z.string(), afterId: z.string() })
export type FollowPlace = z.output<typeof Place>

export const firstPlace: FollowPlace = { afterValue: '', afterId: '' }

const Follow = Place.extend({
  listVersion: z.bigint(),
  listAsOf: z.date(),
  nextVersion: z.bigint().nullable(),
  nextAsOf: z.date().nullable(),
  nextStage: z.enum(followStages).nullable(),
})

/** The list that wallets were last compared with, and the comparison in progress if `nextVersion` is set; undefined before the first. */
export type Follow = z.output<typeof Follow>

export function readFollow(db: Queryable): Promise<Follow | undefined> {
  return db.maybeOne(
    Follow,
    sql`select list_version, list_as_of, next_version, next_as_of, next_stage, after_value, after_id from screening_follow`,
  )
}

/** Lets one transaction at a time compare wallets with a list, until it ends. An advisory lock, since the row may not exist yet. */
export async function lockFollow(tx: Tx): Promise<void> {
  await tx.run(sql`select pg_advisory_xact_lock(hashtextextended('purser.screening_follow', 0))`)
}

export async function upsertFollow(tx: Tx, follow: Follow): Promise<void> {
  await tx.run(sql`
    insert into screening_follow (id, list_version, list_as_of, next_version, next_as_of, next_stage, after_value, after_id)
    values (true, ${follow.listVersion}, ${follow.listAsOf}, ${follow.nextVersion}, ${follow.nextAsOf}, ${follow.nextStage}, ${follow.afterValue}, ${follow.afterId})
    on conflict (id) do update set list_version = excluded.list_version, list_as_of = excluded.list_as_of, next_version = excluded.next_version,
      next_as_of = excluded.next_as_of, next_stage = excluded.next_stage, after_value = excluded.after_value, after_id = excluded.after_id`)
}

/** A step: at most `most` rows behind `after`. */
export interface FollowStep {
  readonly after: FollowPlace
  readonly now: Date
  readonly most: number
}

/** The last row that a step visited, and the number of rows; undefined if there was none. */
const Visited = Place.extend({ count: z.number() })
export type Visited = z.output<typeof Visited> | undefined

/**
 * Makes deposits from these senders, in lower case and in order, due now: those that are not clear or came after `since`. The rows are locked in the
 * order of their ids, as where blocks are booked, so that neither waits for the other in a circle.
 */
export function markSendersDue(
  tx: Queryable,
  { senders, since, ...step }: FollowStep & { readonly senders: readonly string[]; readonly since: Date },
): Promise<Visited> {
  return markDue(tx, {
    ...step,
    table: sql`wallet_transactions`,
    page: sql`
      select given.value, t.id, t.is_due, given.place from unnest(${senders}::text[]) with ordinality as given (value, place)
      cross join lateral (
        select id, aml_status <> 'clear' or created_at >= ${since} as is_due from wallet_transactions
        where direction = 'in' and lower(from_address) = given.value and id > ${idAfter(step.after)} order by id limit ${step.most}) t
      order by given.place, t.id limit ${step.most}`,
  })
}

/** Makes wallets with these addresses, in lower case and in order, due now. The rows are locked in the order of their ids. */
export function markAddressesDue(
  tx: Queryable,
  { addresses, ...step }: FollowStep & { readonly addresses: readonly string[] },
): Promise<Visited> {
  return markDue(tx, {
    ...step,
    table: sql`byo_wallets`,
    page: sql`
      select given.value, t.id, true as is_due, given.place from unnest(${addresses}::text[]) with ordinality as given (value, place)
      cross join lateral (
        select id from byo_wallets where deleted_at is null and lower(address) = given.value and id > ${idAfter(step.after)}
        order by id limit ${step.most}) t
      order by given.place, t.id limit ${step.most}`,
  })
}

/** Makes pending deposits due now, oldest first. The rows are locked in the order of their ids. */
export function markPendingDepositsDue(tx: Queryable, step: FollowStep): Promise<Visited> {
  const { afterValue, afterId } = step.after
  return markDue(tx, {
    ...step,
    table: sql`wallet_transactions`,
    page: sql`
      select created_at::text as value, id, aml_due_at > ${step.now} as is_due, row_number() over (order by created_at, id) as place from (
        select id, created_at, aml_due_at from wallet_transactions
        where direction = 'in' and aml_status = 'pending' and (created_at, id) > (coalesce(nullif(${afterValue}, ''), '-infinity')::timestamptz, ${afterId})
        order by created_at, id limit ${step.most}) t`,
  })
}

/** Makes pending wallets due now. The rows are locked in the order of their ids. */
export function markPendingWalletsDue(tx: Queryable, step: FollowStep): Promise<Visited> {
  return markDue(tx, {
    ...step,
    table: sql`byo_wallets`,
    page: sql`
      select '' as value, id, true as is_due, row_number() over (order by id) as place from (
        select id from byo_wallets where deleted_at is null and aml_status = 'pending' and id > ${step.after.afterId} order by id limit ${step.most}) t`,
  })
}

/** Expression on an address `given`: the id behind which the step begins. */
const idAfter = ({ afterValue, afterId }: FollowPlace): Sql =>
  sql`case when given.value = ${afterValue} then ${afterId} else '' end`

/** `page`: the visited rows, each with whether it is to be due. */
async function markDue(
  tx: Queryable,
  { table, page, now }: FollowStep & { readonly table: Sql; readonly page: Sql },
): Promise<Visited> {
  return tx.maybeOne(
    Visited,
    sql`
    with page as materialized (${page}
    ), locked as materialized (
      select id from ${table} where id in (select id from page where is_due) order by id for update
    ), marked as (
      update ${table} changed set aml_due_at = ${now} from locked where changed.id = locked.id
    )
    select value as after_value, id as after_id, (select count(*)::integer from page) as count from page order by place desc, id desc limit 1`,
  )
}

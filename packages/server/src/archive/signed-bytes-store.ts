import { z } from 'zod'
import { type Db, type Queryable, type Sql, sql } from '../platform/db/db.ts'
import { deletionsMax } from '../platform/db/delete-expired.ts'
import { firstIdAt, idIn } from '../platform/db/page.ts'

/** A table whose rows lose their signed bytes once nothing needs them. */
export interface SignedTable {
  readonly name: 'payments' | 'relays' | 'chain_transactions'
  /** Selects as `key` the next rows older than the bound, in the order of their keys. */
  readonly next: (after: string, bound: Date) => Sql
  /** Drops the bytes of those rows that no longer need them, and returns as `key` those that keep them for now. */
  readonly drop: (keys: readonly string[], bound: Date) => Sql
}

const KeyRow = z.object({ key: z.string() })

/**
 * A payment needs its signature until its money has moved, or the signature has expired and no read of the chain can find its money any more. The
 * data that a refund needs is kept: the nonce of an authorization is part of the payment's claim key, and only the signature of a permit or
 * transaction is dropped.
 */
const payments: SignedTable = {
  name: 'payments',
  next: (after, bound) => sql`
    select id as key from payments where id > ${after} and id < ${firstIdAt('pay', bound.getTime())} order by id limit ${deletionsMax}`,
  drop: (keys, bound) => sql`
    with spent as (
      select id from payments p
      where ${idIn(sql`id`, keys)} and settlement is not null and check_at is null
        and ((status = 'settled' and settled_at < ${bound}) or (status in ('settlement_failed', 'voided') and valid_before < ${bound}))
        and (settlement ->> 'kind' in ('permit2', 'tempo') or claim_key like 'eip3009:%')
        and not exists (select from relays where purpose = 'payments' and subject_id = p.id
          and (check_at is not null or state in ('waiting', 'included', 'watched')) offset 0)
      order by id for no key update skip locked
    ), dropped as (
      update payments set settlement = case settlement ->> 'kind'
        when 'permit2' then settlement || '{"signature": "0x", "permit2612": null}'
        when 'tempo' then settlement || '{"raw": "0x"}' end
      where id = any(array(select id from spent)) and ${between(keys)}
      returning id
    )
    select id as key from payments where ${idIn(sql`id`, keys)} and settlement is not null and id not in (select id from dropped)`,
}

/** Condition on the keys of payments, by which their partitions are found when the statement begins. */
function between(keys: readonly string[]): Sql {
  const sorted = keys.toSorted()
  return sql`id >= concat(${sorted[0] ?? ''}::text) and id <= concat(${sorted.at(-1) ?? ''}::text)`
}

/** A payment's relay that ended is never sent again. Those of transfers may be reopened, and keep their bytes. */
const relays: SignedTable = {
  name: 'relays',
  next: (after, bound) => sql`
    select id::text as key from (
      select id, bool_and(created_at < ${bound}) over (order by id) as is_old
      from (select id, created_at from relays where id > ${after}::bigint order by id limit ${deletionsMax}) as page
    ) as read where is_old order by id`,
  drop: (keys) => sql`
    with spent as (
      select id from relays
      where id = any(${keys}::bigint[]) and purpose = 'payments' and check_at is null and state in ('settled', 'failed', 'expired', 'withdrawn')
      order by id for no key update skip locked
    ), dropped as (
      update relays set payload = '{}' where id = any(array(select id from spent)) returning id
    )
    select id::text as key from relays where id = any(${keys}::bigint[]) and purpose = 'payments' and id not in (select id from dropped)`,
}

/** A transaction needs its bytes until it has long been final. One whose transfer waits for its final block may be reopened, and keeps them. */
const transactions: SignedTable = {
  name: 'chain_transactions',
  next: (after, bound) => sql`
    select id as key from chain_transactions where id > ${after} and id < ${firstIdAt('ctx', bound.getTime())} order by id limit ${deletionsMax}`,
  drop: (keys, bound) => sql`
    with spent as (
      select id from chain_transactions
      where id = any(${keys}::text[]) and status = 'final' and coalesce(final_at, last_broadcast_at, created_at) < ${bound}
        and id <> all(array(select settled_by from transfers where finality_at is not null and settled_by is not null))
      order by id for no key update skip locked
    ), dropped as (
      update chain_transactions set data = '', calls_before = null where id = any(array(select id from spent)) returning id
    ), unsigned as (
      update transaction_attempts set raw = '' where transaction_id = any(array(select id from dropped))
    )
    select id as key from chain_transactions where id = any(${keys}::text[]) and id not in (select id from dropped)`,
}

/** In processing order: a payment keeps its signature while its relay is open. */
export const signedTables: readonly SignedTable[] = [payments, relays, transactions]

/**
 * Drops the signed bytes of the next batch of rows, and advances the cursor past it. Returns the number of rows read; 0 also while another process
 * has locked the cursor.
 */
export function passNext(
  db: Db,
  table: SignedTable,
  { bound, retryAt }: { readonly bound: Date; readonly retryAt: Date },
): Promise<number> {
  return db.tx(async (tx) => {
    const walk = await tx.maybeOne(
      z.object({ after: z.string() }),
      sql`select after from signed_bytes_walks where name = ${table.name} for update skip locked`,
    )
    if (walk === undefined) return 0
    const keys = await keysOf(tx, table.next(walk.after, bound))
    const last = keys.at(-1)
    if (last === undefined) return 0
    const kept = await keysOf(tx, table.drop(keys, bound))
    if (kept.length > 0)
      await tx.run(sql`
        insert into signed_bytes_kept (walk, key, due_at) select ${table.name}, key, ${retryAt} from unnest(${kept}::text[]) as key`)
    await tx.run(sql`update signed_bytes_walks set after = ${last} where name = ${table.name}`)
    return keys.length
  })
}

/** Retries rows that still needed their bytes, longest due first. Returns the number of rows read. */
export function passAgain(
  db: Db,
  table: SignedTable,
  bound: Date,
  times: Readonly<Record<'now' | 'retryAt', Date>>,
): Promise<number> {
  return db.tx(async (tx) => {
    const due = sql`
      select key from signed_bytes_kept where walk = ${table.name} and due_at <= ${times.now} order by due_at limit ${deletionsMax} for update skip locked`
    const keys = await keysOf(tx, due)
    if (keys.length === 0) return 0
    const kept = await keysOf(tx, table.drop(keys, bound))
    await tx.run(sql`
      update signed_bytes_kept set due_at = ${times.retryAt} where walk = ${table.name} and key = any(${kept}::text[])`)
    await tx.run(sql`
      delete from signed_bytes_kept where walk = ${table.name} and key = any(${keys}::text[]) and due_at <= ${times.now}`)
    return keys.length
  })
}

async function keysOf(db: Queryable, statement: Sql): Promise<string[]> {
  return (await db.many(KeyRow, statement)).map(({ key }) => key)
}

import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { instantOf, utcMonthOf } from '../clock.ts'
import type { IdPrefix } from '../ids.ts'
import { type Db, isLockTimeout, type Queryable, type Sql, sql, type Tx } from './db.ts'
import { firstIdAt, timeOfId } from './page.ts'

/** A table that is partitioned by its ids, which begin with their time. */
export interface PartitionedTable {
  readonly table: 'payments' | 'audit_log' | 'events' | 'webhook_deliveries' | 'webhook_attempts'
  readonly prefix: IdPrefix
  /** Storage parameters of each partition. */
  readonly storage?: string
}

export const partitionedTables: readonly PartitionedTable[] = [
  { table: 'payments', prefix: 'pay', storage: 'fillfactor = 50' },
  { table: 'audit_log', prefix: 'aud' },
  { table: 'events', prefix: 'evt' },
  { table: 'webhook_deliveries', prefix: 'del', storage: 'fillfactor = 80' },
  { table: 'webhook_attempts', prefix: 'att' },
]

/** A partition: the rows whose ids are from `from` and below `until`. */
export interface Partition {
  readonly name: string
  /** Undefined for the first partition, which has no lower bound. */
  readonly from: string | undefined
  /** Undefined for the open partition, which has no upper bound, so that each insert finds a partition. */
  readonly until: string | undefined
  readonly fromAt: Date | undefined
  readonly untilAt: Date | undefined
  /** Whether `detach concurrently` was interrupted: its rows are no longer read through the table. */
  readonly isDetaching: boolean
}

/** Returns the tables that are partitioned already: a migration under test may stop before. */
async function listPartitioned(db: Queryable): Promise<PartitionedTable[]> {
  const rows = await db.many(
    z.object({ name: z.string() }),
    sql`select c.relname::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'p' and n.nspname = current_schema()`,
  )
  return partitionedTables.filter(({ table }) => rows.some(({ name }) => name === table))
}

const PartitionRow = z.object({ name: z.string(), bound: z.string(), isDetaching: z.boolean() })

/** Returns the partitions of a table, oldest first. */
export async function listPartitions(db: Queryable, { table }: Pick<PartitionedTable, 'table'>): Promise<Partition[]> {
  const rows = await db.many(
    PartitionRow,
    sql`
    select c.relname::text as name, pg_get_expr(c.relpartbound, c.oid) as bound, i.inhdetachpending as is_detaching
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = ${table}::regclass`,
  )
  const found = rows.map(({ name, bound, isDetaching }) => {
    const [, from, until] = /^FOR VALUES FROM \((?:'(\w+)'|MINVALUE)\) TO \((?:'(\w+)'|MAXVALUE)\)$/.exec(bound) ?? []
    return {
      name,
      from,
      until,
      fromAt: from && timeOfId(from),
      untilAt: until && timeOfId(until),
      isDetaching,
    } as Partition
  })
  return found.sort((left, right) => (left.fromAt?.getTime() ?? 0) - (right.fromAt?.getTime() ?? 0))
}

/** Returns the first instant of the month, of UTC, that many months after the month of an instant. */
export function startOfMonth(instant: Date, monthsLater = 0): Date {
  return instantOf(Date.UTC(instant.getUTCFullYear(), instant.getUTCMonth() + monthsLater))
}

/**
 * Least milliseconds between the time at which an open partition gets an upper bound and that bound: processes of the previous version may still
 * delete by `ctid`.
 */
const noticeMs = 28 * 86_400_000

/**
 * Closes open partitions at the ends of months until the open one begins two months after this one, so that each month has a partition of its own.
 * Returns the names of the new partitions. Reads and writes go on. A stopped run leaves a table that takes every row, and the next one continues.
 */
export async function keepPartitions(db: Db, now: Date): Promise<string[]> {
  const made: string[] = []
  for (const one of await listPartitioned(db)) {
    for (;;) {
      const open = (await listPartitions(db, one)).at(-1)
      if (open === undefined || open.until !== undefined) throw new Error(`${one.table} has no open partition`)
      const end = await endOf(db, open, now)
      if (end === undefined) break
      made.push(await closeOpen(db, one, { open, end, now }))
    }
  }
  return made
}

/** The end of a month behind every row, also those of a process whose clock is wrong; undefined while the partition may stay open. */
async function endOf(db: Queryable, { name, fromAt }: Partition, now: Date): Promise<Date | undefined> {
  if (fromAt !== undefined && fromAt >= startOfMonth(now, 2)) return undefined
  const isAhead = fromAt !== undefined && fromAt > now
  const end = startOfMonth(isAhead ? fromAt : instantOf(now.getTime() + noticeMs), 1)
  const { last } = await db.one(z.object({ last: z.string().nullable() }), plain(`select max(id) as last from ${name}`))
  const lastAt = last === null ? undefined : timeOfId(last)
  return lastAt !== undefined && lastAt >= end ? startOfMonth(lastAt, 1) : end
}

/**
 * Gives the open partition an upper bound, and adds an open one behind it. A check that was validated before, without blocking anybody, is what
 * lets PostgreSQL attach the partition without reading its rows under a lock.
 */
async function closeOpen(
  db: Db,
  one: PartitionedTable,
  { open, end, now }: { readonly open: Partition; readonly end: Date; readonly now: Date },
): Promise<string> {
  const { table, prefix, storage } = one
  const until = firstIdAt(prefix, end.getTime())
  const next = `${table}_from_${utcMonthOf(end).replace('-', '_')}`
  const lower = open.from === undefined ? '' : ` and id >= '${open.from}'`
  const drop = `alter table ${open.name} drop constraint if exists closing`
  // The planner's figures of the whole table, which autovacuum does not renew. Not of a table without rows, and before the next partition is
  // there: PostgreSQL plans a sequential scan of a partition that it knows to be empty, even after the partition has filled.
  const isNow = open.fromAt === undefined || open.fromAt <= now
  if (isNow && (await hasRows(db, open.name))) await db.run(plain(`analyze ${table}`))
  await constrain(db, open.name, { check: `id < '${until}'${lower}`, drop })
  await underLock(db, async (tx) => {
    await tx.run(plain(`alter table ${table} detach partition ${open.name}`))
    await tx.run(plain(attaching(table, open.name, open.from, until)))
    await tx.run(plain(`create table ${next} (like ${table} including all)${storage ? ` with (${storage})` : ''}`))
    await tx.run(plain(attaching(table, next, until, undefined)))
    await tx.run(plain(drop))
  })
  return next
}

/** Adds the constraint `closing` and validates it. */
async function constrain(
  db: Db,
  name: string,
  { check, drop }: { readonly check: string; readonly drop: string },
): Promise<void> {
  await underLock(db, async (tx) => {
    await tx.run(plain(drop))
    await tx.run(plain(`alter table ${name} add constraint closing check (${check}) not valid`))
  })
  try {
    await db.tx((tx) => tx.run(plain(`alter table ${name} validate constraint closing`)), { takesAnyTime: true })
  } catch (error) {
    // It would refuse rows later on.
    await underLock(db, (tx) => tx.run(plain(drop)))
    throw error
  }
}

function attaching(table: string, name: string, from: string | undefined, until: string | undefined): string {
  const bound = (id: string | undefined, none: string): string => (id === undefined ? none : `'${id}'`)
  return `alter table ${table} attach partition ${name} for values from (${bound(from, 'minvalue')}) to (${bound(until, 'maxvalue')})`
}

/** Drops closed partitions without rows that ended before an instant, unless their archive was begun; returns their names. */
export async function dropEmptyPartitions(db: Db, before: Date): Promise<string[]> {
  const dropped: string[] = []
  for (const one of partitionedTables) {
    for (const { name, untilAt, isDetaching } of await listPartitions(db, one)) {
      if (untilAt === undefined || untilAt > before || isDetaching || (await hasRows(db, name))) continue
      await underLock(db, async (tx) => {
        await tx.run(plain(`lock table ${one.table} in access exclusive mode`))
        const begun = sql`select exists (select from archives where partition = ${name}) as is`
        if ((await hasRows(tx, name)) || (await tx.one(Flag, begun)).is) return
        await tx.run(plain(`drop table ${name}`))
        dropped.push(name)
      })
    }
  }
  return dropped
}

const Flag = z.object({ is: z.boolean() })

async function hasRows(db: Queryable, name: string): Promise<boolean> {
  const row = await db.one(Flag, plain(`select exists (select 1 from ${name}) as is`))
  return row.is
}

/** Longest that a change of partitions waits for its locks, during which requests wait behind it, and how often it is tried. */
const lockMsMax = 200
const lockPauseMs = 300
const lockAttemptsMax = 30

/** Runs a change in a transaction that gives up a lock soon and is then tried again. */
export async function underLock<T>(db: Db, work: (tx: Tx) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await db.tx(async (tx) => {
        await tx.run(sql`select set_config('lock_timeout', ${String(lockMsMax)}, true)`)
        return work(tx)
      })
    } catch (error) {
      if (!isLockTimeout(error) || attempt === lockAttemptsMax) throw error
      await delay(lockPauseMs)
    }
  }
}

/** A statement that takes no values: names of partitions and bounds come from the catalogue and from `firstIdAt`. */
export function plain(text: string): Sql {
  return { text, values: [] }
}

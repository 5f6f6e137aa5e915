import type { NetworkName } from '@purser/protocol'
import { z } from 'zod'
import { type Db, type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import type { Id } from '../../../platform/ids.ts'
import { type DueChecks, type DueCursors, listDueChecks, withShareOwners } from '../../plans/index.ts'
import { columns, TransactionRow } from './transaction-store.ts'

/** Rows that wait for finality: `unasked` while no vote on them was undecided, and `undecided` after one. */
export const pendingLists = ['unasked', 'undecided'] as const
export type PendingList = (typeof pendingLists)[number]

const isUnasked = sql`status = 'pending' and undecided_at is null`
const isUndecided = sql`status = 'pending' and undecided_at is not null`

const Pending = z.object({ oldest: z.bigint().nullable(), hasUndecided: z.boolean(), at: z.date() })
export type Pending = z.output<typeof Pending>

/**
 * The rows that wait for finality on a network: the block of the oldest row that is unasked, null without one, and whether any row is undecided. `at` is the
 * database's time.
 */
export function findPending(db: Queryable, network: NetworkName): Promise<Pending> {
  return db.one(
    Pending,
    sql`
    select (select min(block_number) from wallet_transactions where network = ${network} and ${isUnasked}) as oldest,
      exists (select from wallet_transactions where network = ${network} and ${isUndecided}) as has_undecided, clock_timestamp() as at`,
  )
}

export interface PendingPage {
  /** No rows of blocks above this one. */
  readonly upTo: bigint
  /** Undecided rows are listed if their last vote was before this time. */
  readonly at: Date
  readonly most: number
  readonly cursors: DueCursors
}

/**
 * Rows of all organisations that wait for finality, first those that have waited longest. If there are more than `most`, in shares of their owners;
 * otherwise all, in one statement. Migration 0386 indexes them.
 */
export async function listPending(
  db: Db,
  network: NetworkName,
  list: PendingList,
  { upTo, at, most, cursors }: PendingPage,
): Promise<TransactionRow[]> {
  const isListed = sql`block_number <= ${upTo} and ${list === 'unasked' ? isUnasked : isUndecided}`
  const key = list === 'unasked' ? sql`block_number` : sql`undecided_at`
  const now = list === 'unasked' ? sql`${upTo}::bigint` : sql`${at}::timestamptz`
  // Many rows may be of one block, so the index alone decides which of them are read.
  const all = await db.many(
    TransactionRow,
    sql`
    with oldest as materialized (
      select * from wallet_transactions where network = ${network} and ${isListed} and ${key} <= ${now}
      order by ${key} limit ${most + 1})
    select ${columns} from oldest where (select count(*) from oldest) <= ${most} order by ${key}, id`,
  )
  if (all.length > 0) return all
  return listDue(db, { table: keyed(key, isListed), now, network, most, cursors }, isListed)
}

/** At most `most` unasked rows of a range of blocks, in shares of their owners, each with its owner. */
export async function listUnaskedIn(
  db: Db,
  network: NetworkName,
  { from, to, ...page }: { readonly from: bigint; readonly to: bigint } & Pick<PendingPage, 'most' | 'cursors'>,
): Promise<readonly (TransactionRow & { readonly shareOwner: string })[]> {
  const isListed = sql`block_number between ${from} and ${to} and ${isUnasked}`
  const due = { table: keyed(sql`block_number`, isListed), now: sql`${to}::bigint`, network, ...page }
  return withShareOwners(db, await listDue(db, due, isListed))
}

function listDue(db: Db, due: DueChecks, isListed: Sql): Promise<TransactionRow[]> {
  return db.tx(async (tx) => rowsOf(tx, await listDueChecks(tx, due), isListed), { readsInOrder: true })
}

/** Rows as `listDueChecks` reads them. */
function keyed(key: Sql, where: Sql): Sql {
  return sql`(select id, organisation_id, network, ${key} as check_at from wallet_transactions where ${where})`
}

/** Those of the rows with these ids that are still as they were listed, in the order of the ids. */
async function rowsOf(tx: Tx, ids: readonly string[], isListed: Sql): Promise<TransactionRow[]> {
  if (ids.length === 0) return []
  return tx.many(
    TransactionRow,
    sql`
    select ${columns} from wallet_transactions where id = any(${ids}::text[]) and ${isListed} order by array_position(${ids}::text[], id)`,
  )
}

/** Records that no vote decided about these rows: they wait behind all that were voted on before. The caller has locked them. */
export async function markUndecided(tx: Tx, rowIds: readonly Id<'wtx'>[]): Promise<void> {
  if (rowIds.length > 0)
    await tx.run(sql`update wallet_transactions set undecided_at = clock_timestamp() where id = any(${rowIds}::text[])`)
}

import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'

export const ListRow = z.object({
  version: z.bigint(),
  source: z.string(),
  listDate: z.string(),
  asOf: z.date(),
  sha256: z.instanceof(Uint8Array),
  addressCount: z.number(),
})
export type ListRow = z.output<typeof ListRow>

const columns = sql`version, source, to_char(list_date, 'YYYY-MM-DD') as list_date, as_of, sha256, address_count`

/** The current list; undefined before the first start stored the bundled one. */
export function findCurrentList(db: Queryable): Promise<ListRow | undefined> {
  return db.maybeOne(ListRow, sql`select ${columns} from sanctions_lists order by version desc limit 1`)
}

/** The addresses of a version, concatenated, 20 bytes each. */
export async function findListBytes(db: Queryable, version: bigint): Promise<Uint8Array | undefined> {
  const row = await db.maybeOne(
    z.object({ addresses: z.instanceof(Uint8Array) }),
    sql`select addresses from sanctions_lists where version = ${version}`,
  )
  return row?.addresses
}

/** Lock that serializes writers of lists in all processes until the transaction ends. */
export async function lockLists(tx: Tx): Promise<void> {
  await tx.run(sql`select pg_advisory_xact_lock(hashtextextended('purser.sanctions-lists', 0))`)
}

export async function insertList(
  tx: Tx,
  list: Omit<ListRow, 'sha256'> & {
    readonly sha256: Uint8Array
    readonly addresses: Uint8Array
    readonly createdAt: Date
  },
): Promise<void> {
  await tx.run(sql`
    insert into sanctions_lists (version, source, list_date, as_of, sha256, addresses, address_count, created_at)
    values (${list.version}, ${list.source}, ${list.listDate}, ${list.asOf}, ${list.sha256}, ${list.addresses}, ${list.addressCount}, ${list.createdAt})`)
}

/** Updates the source and dates of a version after its addresses were read again unchanged. */
export async function markListSeen(
  tx: Tx,
  version: bigint,
  seen: Pick<ListRow, 'source' | 'listDate' | 'asOf'>,
): Promise<void> {
  await tx.run(sql`
    update sanctions_lists set source = ${seen.source}, list_date = ${seen.listDate}, as_of = ${seen.asOf}
    where version = ${version} and as_of <= ${seen.asOf}`)
}

export const RefreshRow = z.object({ attemptedAt: z.date(), failures: z.number(), lastError: z.string().nullable() })
export type RefreshRow = z.output<typeof RefreshRow>

/** The last refresh attempt. */
export function findRefresh(tx: Tx): Promise<RefreshRow | undefined> {
  return tx.maybeOne(RefreshRow, sql`select attempted_at, failures, last_error from sanctions_refresh`)
}

export async function upsertRefresh(db: Queryable, row: RefreshRow): Promise<void> {
  await db.run(sql`
    insert into sanctions_refresh (id, attempted_at, failures, last_error)
    values (true, ${row.attemptedAt}, ${row.failures}, ${row.lastError})
    on conflict (id) do update set attempted_at = excluded.attempted_at, failures = excluded.failures, last_error = excluded.last_error`)
}

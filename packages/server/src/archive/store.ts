import { z } from 'zod'
import { insertArchivedIds } from '../platform/db/archived-ids.ts'
import { type Db, type Queryable, type Sql, sql, type Tx } from '../platform/db/db.ts'
import type { Partition, PartitionedTable } from '../platform/db/partitions.ts'
import { plain, underLock } from '../platform/db/partitions.ts'
import { logIdOf, type PaymentId } from '../platform/ids.ts'
import type { Cell, Column, Row } from './parquet.ts'
import { findUse } from './use-store.ts'

const ArchiveRow = z.object({
  partition: z.string(),
  tableName: z.enum(['payments', 'audit_log', 'events', 'webhook_deliveries', 'webhook_attempts']),
  beginsAt: z.date().nullable(),
  endsAt: z.date(),
  state: z.enum(['writing', 'written', 'archived']),
  rows: z.bigint(),
  files: z.array(z.string()),
  rowsHash: z.instanceof(Uint8Array).nullable(),
  manifestHash: z.instanceof(Uint8Array).nullable(),
})
export type ArchiveRow = z.output<typeof ArchiveRow>

const columns: Sql = sql`partition, table_name, begins_at, ends_at, state, rows, files, rows_hash, manifest_hash`

export function findArchive(db: Queryable, partition: string): Promise<ArchiveRow | undefined> {
  return db.maybeOne(ArchiveRow, sql`select ${columns} from archives where partition = ${partition}`)
}

/** Returns the archives that a run began and did not end, oldest first. */
export function listUnfinished(db: Queryable): Promise<ArchiveRow[]> {
  return db.many(ArchiveRow, sql`select ${columns} from archives where state <> 'archived' order by ends_at, partition`)
}

/** Returns the newest archive of a table before an instant, which precedes it in the chain of manifests. */
export function findPrevious(db: Queryable, { tableName, endsAt }: ArchiveRow): Promise<ArchiveRow | undefined> {
  return db.maybeOne(
    ArchiveRow,
    sql`select ${columns} from archives where table_name = ${tableName} and ends_at < ${endsAt} and manifest_hash is not null
      order by ends_at desc limit 1`,
  )
}

/** Begins the archive of a partition, or begins it again without what the run before left. */
export async function insertOrResetArchive(
  db: Queryable,
  archive: Pick<ArchiveRow, 'partition' | 'tableName' | 'beginsAt' | 'endsAt'> & { readonly createdAt: Date },
): Promise<void> {
  const { partition, tableName, beginsAt, endsAt, createdAt } = archive
  await db.run(sql`
    insert into archives (partition, table_name, begins_at, ends_at, state, created_at)
    values (${partition}, ${tableName}, ${beginsAt}, ${endsAt}, 'writing', ${createdAt})
    on conflict (partition) do update set state = 'writing', rows = 0, files = '{}', rows_hash = null, manifest_hash = null`)
  await db.run(sql`delete from archived_ids where partition = ${partition}`)
  await db.run(sql`delete from archived_audit_runs where partition = ${partition}`)
}

/** Notes the key of a file before it is stored, so that what a killed run left can be deleted. */
export async function addFile(db: Queryable, partition: string, key: string): Promise<void> {
  await db.run(sql`update archives set files = array_append(files, ${key}) where partition = ${partition}`)
}

export async function markWritten(
  db: Queryable,
  partition: string,
  written: { readonly rows: number; readonly rowsHash: Uint8Array; readonly manifestHash: Uint8Array },
): Promise<void> {
  await db.run(sql`
    update archives set state = 'written', rows = ${written.rows}, rows_hash = ${Buffer.from(written.rowsHash)},
      manifest_hash = ${Buffer.from(written.manifestHash)}
    where partition = ${partition}`)
}

/** Drops the table, whose rows are in the files, and marks the archive as `archived` in the same transaction. */
export async function dropArchived(
  db: Db,
  partition: string,
  archivedAt: Date,
  andThen: (tx: Tx) => void,
): Promise<void> {
  await underLock(db, async (tx) => {
    await tx.run(plain(`drop table ${partition}`))
    await tx.run(
      sql`update archives set state = 'archived', archived_at = ${archivedAt} where partition = ${partition}`,
    )
    andThen(tx)
  })
}

/** Detaches a partition from its table without blocking other requests, so that nothing writes to it any more. Completes an interrupted detach. */
export async function detach(db: Db, table: string, { name, isDetaching }: Partition): Promise<void> {
  await db.run(plain(`alter table ${table} detach partition ${name} ${isDetaching ? 'finalize' : 'concurrently'}`))
}

/**
 * Detaches a partition from its table. If its rows are still needed, does nothing and returns the reason. The table is locked meanwhile, so that no
 * new use of a row, such as a refund, can begin between the check and the detach.
 */
export function detachUnused(
  db: Db,
  one: Pick<PartitionedTable, 'table'>,
  partition: Partition,
): Promise<string | undefined> {
  return underLock(db, async (tx) => {
    await tx.run(plain(`lock table ${one.table} in access exclusive mode`))
    const use = await findUse(tx, one, partition)
    if (use === undefined) await tx.run(plain(`alter table ${one.table} detach partition ${partition.name}`))
    return use
  })
}

const SizeRow = z.object({ rows: z.bigint(), bytes: z.bigint() })

/** The planner's count of the rows of a table, and its size with its indexes. */
export function sizeOf(db: Queryable, partition: string): Promise<z.output<typeof SizeRow>> {
  return db.one(
    SizeRow,
    sql`select greatest(reltuples, 0)::bigint as rows, pg_total_relation_size(oid)::bigint as bytes from pg_class where oid = ${partition}::regclass`,
  )
}

const ColumnRow = z.object({ name: z.string(), type: z.string() })

const types: Readonly<Record<string, Column['type']>> = {
  text: 'text',
  jsonb: 'text',
  numeric: 'text',
  xid8: 'text',
  integer: 'integer',
  smallint: 'integer',
  bigint: 'bigint',
  boolean: 'boolean',
  bytea: 'hex',
  'timestamp with time zone': 'time',
}

/** Returns the columns of a table. Throws for a type that the archive does not know. */
export async function listColumns(db: Queryable, partition: string): Promise<Column[]> {
  const rows = await db.many(
    ColumnRow,
    sql`select attname::text as name, format_type(atttypid, null) as type from pg_attribute
      where attrelid = ${partition}::regclass and attnum > 0 and not attisdropped order by attnum`,
  )
  return rows.map(({ name, type }) => {
    const known = types[type]
    if (known === undefined)
      throw new Error(`${partition}.${name} has the type ${type}, which the archive does not know`)
    return { name, type: known }
  })
}

const CellsRow = z.object({ cells: z.array(z.string().nullable()) })

/** Returns rows behind an id, in the order of their ids. */
export async function listRows(
  db: Queryable,
  partition: string,
  own: readonly Column[],
  page: { readonly after: string; readonly limit: number },
): Promise<Row[]> {
  const texts = own.map(({ name, type }) => {
    if (type === 'hex') return `encode("${name}", 'hex')`
    return type === 'time' ? `(extract(epoch from "${name}") * 1000000)::bigint::text` : `"${name}"::text`
  })
  const rows = await db.many(CellsRow, {
    text: `select array[${texts.join(', ')}] as cells from ${partition} where id > $1 order by id limit $2`,
    values: [page.after, page.limit],
  })
  return rows.map(({ cells }) => own.map(({ type }, at) => cellOf(type, cells[at] ?? null)))
}

function cellOf(type: Column['type'], text: string | null): Cell {
  if (text === null || type === 'text' || type === 'hex') return text
  if (type === 'integer') return Number(text)
  return type === 'boolean' ? text === 'true' : BigInt(text)
}

/** Stores which ids a file contains. A payment's log has the id of the payment, but for those of older versions. */
export async function noteIds(db: Db, partition: string, own: readonly Column[], rows: readonly Row[]): Promise<void> {
  const at = (name: string): number => own.findIndex((column) => column.name === name)
  const [id, logId, organisation, environment] = [at('id'), at('log_id'), at('organisation_id'), at('environment')]
  const named = (column: number, own: readonly Row[]) =>
    own
      .map((row) => ({
        id: String(row[column]),
        organisationId: String(row[organisation]),
        environment: String(row[environment]),
      }))
      .toSorted((left, right) => (left.id < right.id ? -1 : 1))
  const oldLogs = logId === -1 ? [] : rows.filter((row) => row[logId] !== logIdOf(String(row[id]) as PaymentId))
  await db.tx(async (tx) => {
    await insertArchivedIds(tx, partition, named(id, rows))
    await insertArchivedIds(tx, partition, named(logId, oldLogs))
  })
}

/**
 * Runs the work in one process at a time. Throws if another process is archiving. The lock ends with its transaction, which locks none of the tables.
 */
export function onlyArchiver<T>(db: Db, work: () => Promise<T>): Promise<T> {
  return db.tx(
    async (tx) => {
      const lock = sql`select pg_try_advisory_xact_lock(hashtextextended('purser.archive', 0)) as is`
      const { is } = await tx.one(z.object({ is: z.boolean() }), lock)
      if (!is) throw new Error('another process is archiving')
      return work()
    },
    { idleMsMax: 0 },
  )
}

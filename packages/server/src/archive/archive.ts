import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { z } from 'zod'
import { type BlobKey, type BlobStore, isBlobKey, newBlobKey } from '../files/index.ts'
import { type Auditing, auditOperator } from '../platform/audit.ts'
import type { Db } from '../platform/db/db.ts'
import { listPartitions } from '../platform/db/partitions.ts'
import { noteRuns } from './audit-store.ts'
import { type Column, type Row, readParquet, startRowsHash, writeParquet } from './parquet.ts'
import { type KeptDays, obstacleOf } from './plan.ts'
import {
  type ArchiveRow,
  addFile,
  detach,
  detachUnused,
  dropArchived,
  findArchive,
  findPrevious,
  insertOrResetArchive,
  listColumns,
  listRows,
  markWritten,
  noteIds,
} from './store.ts'

export interface ArchiveDeps extends Auditing {
  readonly db: Db
  readonly blobs: BlobStore
  readonly keptDays?: KeptDays | undefined
}

/** A partition that a run archives, by its name. */
export type Archived = Pick<ArchiveRow, 'partition' | 'tableName' | 'beginsAt' | 'endsAt'>

const rowsPerPage = 1_000
const rowsPerFileMax = 50_000
const bytesPerFileMax = 64 * 2 ** 20
/** Upper limit of a stored file's size, above every size that Parquet can give `bytesPerFileMax` of rows. */
const storedBytesMax = 4 * bytesPerFileMax

/** A file of an archive, as the manifest names it. */
const File = z.object({
  key: z.string().refine(isBlobKey),
  rows: z.number(),
  bytes: z.number(),
  sha256: z.string(),
  firstId: z.string(),
  lastId: z.string(),
})
type File = z.output<typeof File>

/**
 * Writes a partition to files, detaches it, and drops it once the detached rows and the stored files were compared. Each step is recorded before the
 * next begins, so that a run after a crash continues: the rows stay in their table until the files are complete. Throws if the partition is archived
 * already: its rows exist only in the files, which must not be overwritten.
 */
export async function archivePartition(deps: ArchiveDeps, wanted: Archived): Promise<ArchiveRow> {
  const { db, clock } = deps
  const { partition } = wanted
  const begun = await findArchive(db, partition)
  if (begun?.state === 'archived') throw new Error(`${partition} is archived already`)
  if (begun?.state !== 'written') await write(deps, wanted)
  await detachIfAttached(deps, wanted)
  if (!(await isWhole(deps, partition))) await write(deps, wanted)
  if (!(await isWhole(deps, partition))) throw new Error(`the files of ${partition} do not match its rows`)
  const archive = await getArchive(db, partition)
  await dropArchived(db, partition, clock.now(), (tx) => {
    const details = { rows: Number(archive.rows), files: archive.files.length }
    auditOperator(deps, tx, { action: 'archive', target: partition, details })
  })
  return archive
}

async function getArchive(db: Db, partition: string): Promise<ArchiveRow> {
  const archive = await findArchive(db, partition)
  if (archive === undefined) throw new Error(`${partition} is not being archived`)
  return archive
}

async function detachIfAttached(
  { db, clock, keptDays }: ArchiveDeps,
  { tableName, partition }: Archived,
): Promise<void> {
  const attached = (await listPartitions(db, { table: tableName })).find(({ name }) => name === partition)
  if (attached === undefined) return
  const one = { table: tableName }
  const obstacle = await obstacleOf(db, one, attached, { now: clock.now(), keptDays })
  const use = obstacle ?? (tableName === 'payments' ? await detachUnused(db, one, attached) : undefined)
  if (use !== undefined) throw new Error(`${partition}: ${use}`)
  if (tableName !== 'payments') await detach(db, tableName, attached)
}

/** Whether the storage has the files as they were written, with the rows of the table. */
async function isWhole({ db, blobs }: ArchiveDeps, partition: string): Promise<boolean> {
  const archive = await getArchive(db, partition)
  if (archive.state !== 'written' || archive.rowsHash === null || !(await areStored(blobs, archive))) return false
  const columns = await listColumns(db, partition)
  const total = startRowsHash()
  for await (const page of pagesOf(db, partition, columns)) total.add(page)
  const { count, hash } = total.end()
  return BigInt(count) === archive.rows && Buffer.compare(hash, archive.rowsHash) === 0
}

const Manifest = z.object({ files: z.array(File) })

/** Whether the manifest and each file that it names are stored with the hashes that they were written with. */
async function areStored(blobs: BlobStore, { files, manifestHash }: ArchiveRow): Promise<boolean> {
  const manifest = await contentOf(blobs, files.at(-1))
  if (manifest === undefined || manifestHash === null || Buffer.compare(sha256(manifest), manifestHash) !== 0)
    return false
  for (const { key, sha256: written } of Manifest.parse(JSON.parse(manifest.toString())).files) {
    const content = await contentOf(blobs, key)
    if (content === undefined || hexOf(sha256(content)) !== written) return false
  }
  return true
}

async function contentOf(blobs: BlobStore, key: string | undefined): Promise<Buffer | undefined> {
  const opened = key !== undefined && isBlobKey(key) ? await blobs.open(key) : undefined
  return opened && buffer(opened.content)
}

async function* pagesOf(db: Db, partition: string, columns: readonly Column[]): AsyncIterable<Row[]> {
  const id = columns.findIndex(({ name }) => name === 'id')
  for (let after = ''; ; ) {
    const page = await listRows(db, partition, columns, { after, limit: rowsPerPage })
    if (page.length > 0) yield page
    if (page.length < rowsPerPage) return
    after = String(page.at(-1)?.[id])
  }
}

/** Writes the files and the manifest, and reads each back before the next. */
async function write(deps: ArchiveDeps, wanted: Archived): Promise<void> {
  const { db, blobs, clock } = deps
  const { partition } = wanted
  const before = await findArchive(db, partition)
  for (const key of before?.files ?? []) if (isBlobKey(key)) await blobs.delete(key)
  await insertOrResetArchive(db, { ...wanted, createdAt: clock.now() })
  const columns = await listColumns(db, partition)
  const total = startRowsHash()
  const files: File[] = []
  for await (const rows of partsOf(db, partition, columns)) {
    files.push(await writeFile(deps, wanted, columns, rows))
    total.add(rows)
  }
  const { count, hash } = total.end()
  if (wanted.tableName === 'audit_log') await noteRuns(db, partition)
  const archive = await getArchive(db, partition)
  const previous = await findPrevious(db, archive)
  const manifest = manifestOf(archive, { columns, files, rows: count, hash, previous })
  await store(deps, partition, manifest)
  await markWritten(db, partition, { rows: count, rowsHash: hash, manifestHash: sha256(manifest) })
}

async function* partsOf(db: Db, partition: string, columns: readonly Column[]): AsyncIterable<Row[]> {
  let rows: Row[] = []
  let bytes = 0
  for await (const page of pagesOf(db, partition, columns)) {
    rows.push(...page)
    for (const row of page) for (const cell of row) bytes += typeof cell === 'string' ? cell.length : 8
    if (rows.length < rowsPerFileMax && bytes < bytesPerFileMax) continue
    yield rows
    rows = []
    bytes = 0
  }
  if (rows.length > 0) yield rows
}

async function writeFile(
  deps: ArchiveDeps,
  { tableName, partition }: Archived,
  columns: Column[],
  rows: Row[],
): Promise<File> {
  const written = writeParquet(columns, rows)
  const { key, content } = await store(deps, partition, written)
  const [given, stored] = [startRowsHash(), startRowsHash()]
  given.add(rows)
  stored.add(await readParquet(columns, content))
  const [wanted, found] = [given.end(), stored.end()]
  if (wanted.count !== found.count || Buffer.compare(wanted.hash, found.hash) !== 0)
    throw new Error(`a file of ${partition} was not read back as it was written`)
  // No operation gets another row by its id.
  if (tableName === 'events' || tableName === 'payments') await noteIds(deps.db, partition, columns, rows)
  const id = columns.findIndex(({ name }) => name === 'id')
  const [firstId, lastId] = [String(rows[0]?.[id]), String(rows.at(-1)?.[id])]
  return { key, rows: rows.length, bytes: written.length, sha256: hexOf(sha256(written)), firstId, lastId }
}

/** Stores content and returns it as the storage gives it back. */
async function store(
  { db, blobs, random }: ArchiveDeps,
  partition: string,
  content: Uint8Array,
): Promise<{ readonly key: BlobKey; readonly content: Uint8Array }> {
  const key = newBlobKey(random)
  await addFile(db, partition, key)
  await blobs.put(Readable.from([content]), { bytesMax: storedBytesMax, key })
  const stored = await contentOf(blobs, key)
  if (stored === undefined || Buffer.compare(stored, content) !== 0)
    throw new Error(`a file of ${partition} was not stored as it was written`)
  return { key, content: stored }
}

/** The manifest, in JSON: which files an archive has, and the hash of the manifest before, so that none can be changed or left out later. */
function manifestOf(
  { partition, tableName, beginsAt, endsAt }: ArchiveRow,
  written: {
    readonly columns: readonly Column[]
    readonly files: readonly File[]
    readonly rows: number
    readonly hash: Uint8Array
    readonly previous: ArchiveRow | undefined
  },
): Uint8Array {
  const { columns, files, rows, hash, previous } = written
  const manifest = {
    format: 'purser-archive-1',
    table: tableName,
    partition,
    from: beginsAt?.toISOString() ?? null,
    until: endsAt.toISOString(),
    rows,
    rowsSha256: hexOf(hash),
    columns,
    files,
    previous:
      previous === undefined
        ? null
        : {
            partition: previous.partition,
            manifestSha256: previous.manifestHash && hexOf(previous.manifestHash),
          },
  }
  return new TextEncoder().encode(JSON.stringify(manifest, null, 2))
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

function sha256(content: Uint8Array): Uint8Array {
  return new Uint8Array(createHash('sha256').update(content).digest())
}

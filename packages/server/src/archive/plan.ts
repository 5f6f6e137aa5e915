import { instantOf } from '../platform/clock.ts'
import type { Db, Queryable } from '../platform/db/db.ts'
import { listPartitions, type Partition, type PartitionedTable, partitionedTables } from '../platform/db/partitions.ts'
import { type ArchiveRow, listUnfinished, sizeOf } from './store.ts'
import { findUse } from './use-store.ts'

const dayMs = 86_400_000
/** Days for which the API returns events, plus one for requests in progress. */
const answeredDays = 31

/** Days for which rows stay in the database after the end of their month; undefined: forever. */
export type KeptDays = Readonly<Partial<Record<'payments' | 'audit_log', number | undefined>>>

/** The settings that decide how long rows stay. */
export interface Kept {
  readonly now: Date
  readonly keptDays?: KeptDays | undefined
}

/** A partition of the archive plan; `obstacle` is why it cannot be archived yet. */
export interface Planned extends Pick<ArchiveRow, 'partition' | 'tableName' | 'beginsAt' | 'endsAt'> {
  /** Whether an earlier run has begun it. */
  readonly isBegun: boolean
  readonly obstacle: string | undefined
  /** An estimate by PostgreSQL's planner. */
  readonly rows: number
  readonly bytes: number
}

/** Returns the partitions that end before an instant, oldest first, and those that an earlier run did not end. */
export async function planArchive(db: Db, before: Date, kept: Kept): Promise<Planned[]> {
  const begun = await listUnfinished(db)
  const attached: Planned[] = []
  for (const one of partitionedTables) {
    for (const partition of await listPartitions(db, one)) {
      const { name, fromAt, untilAt } = partition
      const isBegun = begun.some((archive) => archive.partition === name)
      if (untilAt === undefined || (untilAt > before && !isBegun)) continue
      const obstacle = await obstacleOf(db, one, partition, kept)
      const part = { partition: name, tableName: one.table, beginsAt: fromAt ?? null, endsAt: untilAt }
      attached.push({ ...part, isBegun, obstacle, ...(await figuresOf(db, name)) })
    }
  }
  const detached = begun.filter(({ partition }) => !attached.some((one) => one.partition === partition))
  const others = detached.map(async ({ partition, tableName, beginsAt, endsAt }) => {
    const part = { partition, tableName, beginsAt, endsAt }
    return { ...part, isBegun: true, obstacle: undefined, ...(await figuresOf(db, partition)) }
  })
  return [...(await Promise.all(others)), ...attached]
}

async function figuresOf(db: Queryable, partition: string): Promise<Pick<Planned, 'rows' | 'bytes'>> {
  const { rows, bytes } = await sizeOf(db, partition)
  return { rows: Number(rows), bytes: Number(bytes) }
}

/** Returns why a partition may not be archived yet. */
export async function obstacleOf(
  db: Queryable,
  one: Pick<PartitionedTable, 'table'>,
  partition: Partition,
  { now, keptDays = {} }: Kept,
): Promise<string | undefined> {
  const { untilAt } = partition
  const isKept = one.table === 'payments' || one.table === 'audit_log'
  const days = isKept ? keptDays[one.table] : answeredDays
  if (days === undefined) return `they stay: ${one.table.toUpperCase()}_KEPT_DAYS is not set`
  const freeAt = untilAt && instantOf(untilAt.getTime() + days * dayMs)
  if (freeAt === undefined || freeAt > now) return `answered until ${freeAt?.toISOString().slice(0, 10) ?? 'it ends'}`
  return findUse(db, one, partition)
}

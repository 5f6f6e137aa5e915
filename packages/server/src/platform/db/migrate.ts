import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { systemClock } from '../clock.ts'
import { createLog, type Log } from '../log.ts'
import {
  type Db,
  isConnectTimeout,
  isDeadlock,
  isLockTimeout,
  openDb,
  type Pooler,
  type Queryable,
  type Sql,
  sql,
  type Tx,
} from './db.ts'
import { keepPartitions } from './partitions.ts'
import { requireIdOrder } from './text-order.ts'

/** One file of changes. Those whose name ends in `.concurrent.sql` run outside a transaction, for indexes that are built while the service runs. */
export interface Migration {
  readonly name: string
  readonly text: string
  readonly checksum: string
}

export interface MigrateOptions {
  readonly url: string
  /** The pooler between the address and PostgreSQL; default `none`. */
  readonly pooler?: Pooler
  /** Default: those of this build. */
  readonly migrations?: readonly Migration[]
  /** Longest wait for a lock of a table, during which requests for the table wait behind it; default 2,000. */
  readonly lockMsMax?: number
  /** Milliseconds for which a migration that gets no lock, or waits for another process's migrations, is tried again; default 600,000. */
  readonly patienceMs?: number
  readonly log?: Log
}

const directory = new URL('./migrations/', import.meta.url)
const retryMs = 500

let listed: Promise<readonly Migration[]> | undefined

/** The migrations of this build, in order. Their names begin with four digits, and they are never edited after release. */
export function listMigrations(): Promise<readonly Migration[]> {
  listed ??= readMigrations()
  return listed
}

async function readMigrations(): Promise<Migration[]> {
  const names = (await readdir(directory)).filter((name) => /^\d{4}_.*\.sql$/.test(name)).sort()
  return Promise.all(names.map(async (name) => aMigration(name, await readFile(new URL(name, directory), 'utf8'))))
}

export function aMigration(name: string, text: string): Migration {
  return { name, text, checksum: createHash('sha256').update(text).digest('hex') }
}

/**
 * Runs the missing migrations over its own connections, without a limit of time for a statement; returns their names. Each file commits by
 * itself, so that a stopped run continues where it was. Then makes the partitions of the coming months. One process at a time runs them; the
 * others wait and find nothing left. A migration waits for locks only for `lockMsMax` and is then tried again, so that the requests behind it
 * are not blocked by what it waits for. Throws if a migration was changed after it had run, and for an
 * empty database that does not store UTF-8 or does not sort ids as ASCII.
 */
export async function migrate(options: MigrateOptions): Promise<string[]> {
  const { url, pooler = 'none', log = createLog({ level: 'silent' }) } = options
  const migrations = options.migrations ?? (await listMigrations())
  const db = openDb({ url, pooler, connectionsMax: 2, statementTimeoutMs: 0, log })
  const persist = createPersistence(options.patienceMs ?? 600_000)
  try {
    const names: string[] = []
    // Each try for the lock is a transaction of its own: one that stays open keeps a snapshot, for which the holder's indexes would wait.
    await onSlowStart(() => requireAnyTime(db))
    await persist(async () => {
      names.push(...(await migrateUnderLock(db, { ...options, migrations, log, persist })))
    })
    return names
  } finally {
    await db.close()
  }
}

/** Throws if a statement outside of a transaction has a time limit, which only the role can end behind a pool of transactions. */
async function requireAnyTime(db: Db): Promise<void> {
  const { limit } = await db.one(
    z.object({ limit: z.string() }),
    sql`select current_setting('statement_timeout') as limit`,
  )
  if (limit === '0') return
  throw new Error(
    `the database ends each statement of this role after ${limit}, and behind a pool of transactions this cannot be changed: ` +
      'set DATABASE_DIRECT_URL to the address of PostgreSQL itself',
  )
}

/**
 * Runs the missing migrations. The transaction's lock ends with its connection. Building an index concurrently waits for every open snapshot, so this
 * transaction must not keep one: its last command takes no snapshot, which releases the previous one.
 */
function migrateUnderLock(
  db: Db,
  {
    migrations,
    log,
    persist,
    lockMsMax = 2_000,
  }: Pick<MigrateOptions, 'lockMsMax'> & {
    readonly migrations: readonly Migration[]
    readonly log: Log
    readonly persist: ReturnType<typeof createPersistence>
  },
): Promise<string[]> {
  return db.tx(
    async (tx) => {
      await requireLock(tx)
      await tx.run(sql`set local application_name = 'purser migrate'`)
      await db.run(sql`create table if not exists schema_migrations (
        name text primary key, checksum text not null, applied_at timestamptz not null default now())`)
      const applied = await readApplied(db)
      if (applied.length === 0) await requireIdOrder(db)
      const missing = missingOf(migrations, applied)
      for (const migration of missing) {
        await persist(() => apply(db, migration, lockMsMax))
        log.info({ migration: migration.name }, 'migrated')
      }
      await keepPartitions(db, systemClock.now())
      return missing.map(({ name }) => name)
    },
    { idleMsMax: 0 },
  )
}

async function requireLock(tx: Tx): Promise<void> {
  const { isLocked } = await tx.one(
    z.object({ isLocked: z.boolean() }),
    sql`select pg_try_advisory_xact_lock(hashtextextended('purser.migrations', 0)) as is_locked`,
  )
  if (!isLocked) throw new Busy('another process is migrating the database')
}

async function apply(db: Db, migration: Migration, lockMsMax: number): Promise<void> {
  const { name, checksum } = migration
  const recorded = sql`insert into schema_migrations (name, checksum) values (${name}, ${checksum})`
  const statements = statementsOf(migration.text)
  if (name.endsWith('.concurrent.sql')) {
    await dropUnfinishedIndexes(db, migration)
    for (const statement of statements)
      for (const one of await onPartitions(db, statement))
        if (ownTransactions.test(one.text)) await db.run(one)
        else await withinLockTime(db, lockMsMax, [one])
    await db.run(recorded)
    return
  }
  await withinLockTime(db, lockMsMax, [...statements, recorded])
}

/** Statements that PostgreSQL refuses in a transaction: of an index that is built beside writes, and blocks that commit their own steps. */
const ownTransactions = /\b(?:concurrently|commit)\b/i

async function withinLockTime(db: Db, lockMsMax: number, statements: readonly Sql[]): Promise<void> {
  await db.tx(
    async (tx) => {
      await tx.run(sql`select set_config('lock_timeout', ${String(lockMsMax)}, true)`)
      for (const statement of statements) await tx.run(statement)
    },
    { idleMsMax: 0 },
  )
}

/** `{payments}_by_status`: the index of each partition of `payments` that belongs to the index `payments_by_status` of the table. */
const partitionIndex = /\{(\w+)\}(_\w+)/

/**
 * Returns a statement with such a name once for each partition that has no index of that one yet, others as they are. A partition that is made after
 * the index of the table has one from its beginning.
 */
async function onPartitions(db: Db, statement: Sql): Promise<readonly Sql[]> {
  const [, table, suffix] = partitionIndex.exec(statement.text) ?? []
  if (table === undefined || suffix === undefined) return [statement]
  const partitions = await db.many(
    z.object({ name: z.string() }),
    sql`
    select c.relname::text as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = ${table}::regclass and not exists (
      select from pg_inherits attached join pg_index x on x.indexrelid = attached.inhrelid
      where attached.inhparent = to_regclass(${table + suffix}) and x.indrelid = c.oid)
    order by c.relname`,
  )
  return partitions.map(({ name }) => statementOf(statement.text.replaceAll(`{${table}}`, name)))
}

/** Removes what an interrupted run left of the indexes that a migration builds: such an index is never used, and slows every write. */
async function dropUnfinishedIndexes(db: Db, { text }: Migration): Promise<void> {
  const unfinished = await db.many(
    z.object({ name: z.string() }),
    sql`
    select c.relname as name from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace
    where not i.indisvalid and c.relkind = 'i' and n.nspname = current_schema()`,
  )
  const names = new RegExp(
    `^(?:${(text.match(/[\w{}]+/g) ?? []).map((word) => word.replace(/\{(\w+)\}/, '$1\\w*')).join('|')})$`,
  )
  for (const { name } of unfinished.filter((index) => names.test(index.name)))
    await db.run(statementOf(`drop index concurrently if exists "${name}"`))
}

/** A migration cannot run now: another process or transaction has the lock. */
class Busy extends Error {}

/** Retries work that is `Busy`, for this long in total. */
function createPersistence(patienceMs: number): (work: () => Promise<void>) => Promise<void> {
  const endsAtMs = performance.now() + patienceMs
  return async (work) => {
    for (;;) {
      try {
        return await work()
      } catch (error) {
        const isBusy = error instanceof Busy || isLockTimeout(error) || isDeadlock(error)
        if (!isBusy || performance.now() > endsAtMs) throw error
        await delay(retryMs)
      }
    }
  }
}

/**
 * Throws unless every migration of this build has run, with a message that says what to do. A database of a newer build is accepted: during an
 * upgrade both run side by side.
 */
export async function requireMigrated(db: Db): Promise<void> {
  const applied = await onSlowStart(() => readApplied(db))
  const missing = missingOf(await listMigrations(), applied)
  const [first] = missing
  if (first === undefined) return
  const reason =
    applied.length === 0
      ? 'the database has no tables of Purser'
      : `the database lacks ${missing.length} migrations, from ${first.name} on`
  throw new Error(`${reason}; run purser migrate`)
}

const startAttemptsMax = 5

/** Repeats the first statement of a process while its connection is not open in time: right after its own start, a database may be slow. */
async function onSlowStart<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work()
    } catch (error) {
      if (attempt === startAttemptsMax || !isConnectTimeout(error)) throw error
    }
  }
}

/** Whether every migration of this build has run; used by `/readyz`. */
export async function isMigrated(db: Db): Promise<boolean> {
  return missingOf(await listMigrations(), await readApplied(db)).length === 0
}

interface Applied {
  readonly name: string
  readonly checksum: string
}

function missingOf(migrations: readonly Migration[], applied: readonly Applied[]): Migration[] {
  const done = new Map(applied.map(({ name, checksum }) => [name, checksum]))
  const changed = migrations.find(({ name, checksum }) => (done.get(name) ?? checksum) !== checksum)
  if (changed !== undefined) throw new Error(`migration ${changed.name} was changed after it had run`)
  return migrations.filter(({ name }) => !done.has(name))
}

async function readApplied(db: Queryable): Promise<Applied[]> {
  const { isThere } = await db.one(
    z.object({ isThere: z.boolean() }),
    sql`select to_regclass('schema_migrations') is not null as is_there`,
  )
  if (!isThere) return []
  return db.many(
    z.object({ name: z.string(), checksum: z.string() }),
    sql`select name, checksum from schema_migrations`,
  )
}

/** Splits a migration at lines that end in `;`, since a prepared statement holds one command. Functions end at `$$;`. */
function statementsOf(text: string): Sql[] {
  const statements: string[] = []
  let current = ''
  let insideBody = false
  for (const line of text.split('\n')) {
    if (line.trim().startsWith('--')) continue
    if ((line.match(/\$\$/g) ?? []).length % 2 === 1) insideBody = !insideBody
    current += `${line}\n`
    if (!insideBody && line.trimEnd().endsWith(';')) {
      statements.push(current)
      current = ''
    }
  }
  if (current.trim() !== '') statements.push(current)
  return statements.filter((statement) => statement.trim() !== '').map(statementOf)
}

function statementOf(text: string): Sql {
  return sql(Object.assign([text], { raw: [text] }) as unknown as TemplateStringsArray)
}

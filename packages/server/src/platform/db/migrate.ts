import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { z } from 'zod'
import { type Db, type Sql, sql, type Tx } from './db.ts'

interface Migration {
  readonly name: string
  readonly text: string
  readonly checksum: string
}

const directory = new URL('./migrations/', import.meta.url)

/** The migrations of this build, in order. Their names begin with four digits, and they are never edited after release. */
export async function listMigrations(): Promise<Migration[]> {
  const names = (await readdir(directory)).filter((name) => /^\d{4}_.*\.sql$/.test(name)).sort()
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(new URL(name, directory), 'utf8')
      return { name, text, checksum: createHash('sha256').update(text).digest('hex') }
    }),
  )
}

/**
 * Runs the missing migrations. Several processes may call it concurrently: an advisory lock lets one run, and the others find nothing to
 * do. A migration whose text changed since it ran stops the start, since the state of the tables is then unknown.
 */
export async function migrate(db: Db): Promise<string[]> {
  const migrations = await listMigrations()
  return db.tx(async (tx) => {
    await tx.run(sql`select pg_advisory_xact_lock(hashtextextended('purser.migrations', 0))`)
    await tx.run(sql`create table if not exists schema_migrations (
      name text primary key, checksum text not null, applied_at timestamptz not null default now())`)
    const done = new Map((await readApplied(tx)).map((row) => [row.name, row.checksum]))
    const fresh: string[] = []
    for (const migration of migrations) {
      const checksum = done.get(migration.name)
      if (checksum === migration.checksum) continue
      if (checksum !== undefined) throw new Error(`migration ${migration.name} was changed after it had run`)
      for (const statement of statementsOf(migration.text)) await tx.run(statement)
      await tx.run(
        sql`insert into schema_migrations (name, checksum) values (${migration.name}, ${migration.checksum})`,
      )
      fresh.push(migration.name)
    }
    return fresh
  })
}

/** Whether every migration of this build has run; used by `/readyz`. */
export async function isMigrated(db: Db): Promise<boolean> {
  const names = (await listMigrations()).map((migration) => migration.name)
  const applied = new Set((await readApplied(db)).map((row) => row.name))
  return names.every((name) => applied.has(name))
}

function readApplied(db: Pick<Tx, 'many'>): Promise<{ name: string; checksum: string }[]> {
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
  return statements
    .filter((statement) => statement.trim() !== '')
    .map((statement) => {
      const strings = Object.assign([statement], { raw: [statement] })
      return sql(strings as unknown as TemplateStringsArray)
    })
}

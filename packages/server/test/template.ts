import pg from 'pg'
import { migrate } from '../src/platform/db/migrate.ts'

/** The run's migrated database, which has no sessions: PostgreSQL copies only such a database. */
export const template = 'purser_template'

export async function makeTemplate(serverUrl: string): Promise<void> {
  await createDatabase(serverUrl, template, 'template0')
  await migrate({ url: withDatabase(serverUrl, template) })
}

/**
 * Makes a database from a template that has no sessions. It copies files, not blocks into the log: with a thousand small
 * files that takes half of PostgreSQL's time or less.
 */
export function createDatabase(
  serverUrl: string,
  name: string,
  from: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<void> {
  return administer(
    serverUrl,
    `create database ${name} template ${from} strategy file_copy`,
    ...Object.entries(settings).map(([setting, value]) => `alter database ${name} set ${setting} = '${value}'`),
  )
}

/** Runs statements that cannot run in a transaction, such as `create database`, one after the other. */
export async function administer(serverUrl: string, ...statements: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl })
  await client.connect()
  try {
    for (const statement of statements) await client.query(statement)
  } finally {
    await client.end()
  }
}

/** The server's address with another database. */
export function withDatabase(url: string, name: string): string {
  return url.replace(/^(postgres(?:ql)?:\/\/[^/?]*)\/[^?]*/, `$1/${name}`)
}

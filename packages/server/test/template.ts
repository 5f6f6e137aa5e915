import pg from 'pg'
import { migrate } from '../src/platform/db/migrate.ts'

/** The run's migrated database, which has no sessions: PostgreSQL copies only such a database. */
export const template = 'purser_template'

export async function makeTemplate(serverUrl: string): Promise<void> {
  await administer(serverUrl, `create database ${template}`)
  await migrate({ url: withDatabase(serverUrl, template) })
}

/** Runs one statement that cannot run in a transaction, such as `create database`. */
export async function administer(serverUrl: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

/** The server's address with another database. */
export function withDatabase(url: string, name: string): string {
  return url.replace(/^(postgres(?:ql)?:\/\/[^/?]*)\/[^?]*/, `$1/${name}`)
}

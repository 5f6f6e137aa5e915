import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'
import { type Db, openDb } from '../src/platform/db/db.ts'
import { migrate } from '../src/platform/db/migrate.ts'
import { createLog } from '../src/platform/log.ts'

export interface TestDatabase {
  readonly db: Db
  readonly url: string
  drop(): Promise<void>
}

const template = 'purser_template'

/** A new migrated database in the run's PostgreSQL, copied from a template that the first caller makes. */
export async function freshDatabase(options: { readonly connectionsMax?: number } = {}): Promise<TestDatabase> {
  const serverUrl = inject('postgresUrl')
  await makeTemplate(serverUrl)
  return createDatabase(serverUrl, `template ${template}`, options)
}

/** The same of an operator whose PostgreSQL sorts text as an English dictionary does: `a` before `B`. */
export async function aDictionaryDatabase(): Promise<TestDatabase> {
  const database = await createDatabase(
    inject('postgresUrl'),
    `template template0 locale_provider icu icu_locale 'en-US'`,
  )
  await migrate(database.db)
  return database
}

async function createDatabase(
  serverUrl: string,
  how: string,
  options: { readonly connectionsMax?: number } = {},
): Promise<TestDatabase> {
  const name = `test_${randomBytes(8).toString('hex')}`
  await administer(serverUrl, (client) => client.query(`create database ${name} ${how}`))
  const url = withDatabase(serverUrl, name)
  const db = openDb({ url, connectionsMax: options.connectionsMax ?? 10, log: createLog({ level: 'silent' }) })
  return {
    db,
    url,
    async drop() {
      await db.close()
      await administer(serverUrl, (client) => client.query(`drop database if exists ${name} with (force)`))
    },
  }
}

/** The same server's address with another database. */
export function withDatabase(url: string, name: string): string {
  return url.replace(/^(postgres(?:ql)?:\/\/[^/?]*)\/[^?]*/, `$1/${name}`)
}

async function makeTemplate(serverUrl: string): Promise<void> {
  await administer(serverUrl, async (client) => {
    await client.query('select pg_advisory_lock(7260)')
    const found = await client.query('select 1 from pg_database where datname = $1', [template])
    if (found.rowCount === 0) {
      await client.query(`create database ${template}_making`)
      const db = openDb({
        url: withDatabase(serverUrl, `${template}_making`),
        connectionsMax: 2,
        log: createLog({ level: 'silent' }),
      })
      await migrate(db)
      await db.close()
      await client.query(`alter database ${template}_making rename to ${template}`)
    }
  })
}

async function administer(serverUrl: string, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl })
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}

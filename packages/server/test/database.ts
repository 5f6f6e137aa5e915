import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'
import { type Db, openDb } from '../src/platform/db/db.ts'
import { migrate } from '../src/platform/db/migrate.ts'
import { createLog } from '../src/platform/log.ts'
import { administer, createDatabase, template, withDatabase } from './template.ts'

export interface TestDatabase {
  readonly db: Db
  readonly url: string
  drop(): Promise<void>
}

interface NewDatabase {
  readonly connectionsMax?: number
  /**
   * `general`: PostgreSQL plans a statement once for each connection, and not for each of its first five runs. A plan does not change what a
   * statement returns. Not for tests of plans, or of the rows that a statement reads.
   */
  readonly plans?: 'general'
}

/** A new migrated database in the run's PostgreSQL. */
export async function freshDatabase(options: NewDatabase = {}): Promise<TestDatabase> {
  return openNew(template, options)
}

/** A new database without any table; `options` are those of `create database`. */
export function anEmptyDatabase(options = ''): Promise<TestDatabase> {
  return openNew(`template0 ${options}`)
}

/** A new migrated database with an English dictionary collation: `a` before `B`. */
export async function aDictionaryDatabase(): Promise<TestDatabase> {
  const database = await anEmptyDatabase(`locale_provider icu icu_locale 'en-US'`)
  await migrate({ url: database.url })
  return database
}

/**
 * Connections of the driver itself. Its `end()` resolves before the server has closed each of them, so that `drop()` may still cut one off: an
 * error without a listener would then end the test run.
 */
export function openPool(url: string, max: number): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max })
  pool.on('error', () => undefined)
  pool.on('connect', (client) => client.on('error', () => undefined))
  return pool
}

async function openNew(from: string, { connectionsMax = 10, plans }: NewDatabase = {}): Promise<TestDatabase> {
  const serverUrl = inject('postgresUrl')
  const name = `test_${randomBytes(8).toString('hex')}`
  await createDatabase(serverUrl, name, from, plans === 'general' ? { plan_cache_mode: 'force_generic_plan' } : {})
  const url = withDatabase(serverUrl, name)
  // PostgreSQL starts a process for each connection, which may take more than two seconds on a loaded machine.
  const db = openDb({ url, connectionsMax, connectMsMax: 9_000, log: createLog({ level: 'silent' }) })
  return {
    db,
    url,
    async drop() {
      await db.close()
      await administer(serverUrl, `drop database if exists ${name} with (force)`)
    },
  }
}

import { expect } from 'vitest'
import { type Db, type Sql, sql } from '../../src/platform/db/db.ts'
import type { Keeper } from './keeper.ts'
import { countOf } from './vault-books.ts'

/** A place in a transaction: the statement there waits for a lock that the test has. */
export interface Moment {
  readonly lock: Sql
  /** The beginning of the statement, as a PostgreSQL regular expression. */
  readonly at: string
}

/**
 * Kills the process in the middle of a transaction, which `begin` starts: it sends a request, or starts the process. Resolves once the database
 * has ended the dead process's transactions.
 */
export async function killAt(
  { db, keeper }: { readonly db: Db; readonly keeper: Keeper },
  { lock, at }: Moment,
  begin: () => Promise<unknown>,
): Promise<'answered' | 'lost'> {
  const outcome = await db.tx(async (tx) => {
    await tx.run(lock)
    const begun = begin().then(
      () => 'answered' as const,
      () => 'lost' as const,
    )
    await expect.poll(() => waiting(db, at), { timeout: 60_000 }).toBeGreaterThan(0)
    expect(await keeper.end('SIGKILL')).toBe('SIGKILL')
    return begun
  })
  await expect.poll(() => underWay(db), { timeout: 60_000 }).toBe(0)
  return outcome
}

function waiting(db: Db, statement: string): Promise<number> {
  return countOf(
    db,
    sql`
    select count(*) as count from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query ~ ${`^\\s*${statement}`}`,
  )
}

/** The number of open statements and transactions of other sessions. */
function underWay(db: Db): Promise<number> {
  return countOf(
    db,
    sql`
    select count(*) as count from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and state <> 'idle' and backend_type = 'client backend'`,
  )
}

import { expect } from 'vitest'
import { type Db, type Sql, sql } from '../../src/platform/db/db.ts'
import type { Keeper } from './keeper.ts'
import { countOf } from './vault-books.ts'

/** A place in a transaction: the statement there waits for a lock that the test holds. */
export interface Moment {
  readonly held: Sql
  /** How the statement begins: a regular expression of PostgreSQL. */
  readonly at: string
}

/**
 * Kills the process in the middle of a transaction. `begin` asks it for one; without, its background work comes there by itself. Answers
 * once the database has ended what the dead process had begun.
 */
export async function killAt(
  { db, keeper }: { readonly db: Db; readonly keeper: Keeper },
  { held, at }: Moment,
  begin: () => Promise<unknown> = () => Promise.reject(new Error('nothing was asked')),
): Promise<'answered' | 'lost'> {
  const outcome = await db.tx(async (tx) => {
    await tx.run(held)
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

/** Statements and transactions of others that have not ended. */
function underWay(db: Db): Promise<number> {
  return countOf(
    db,
    sql`
    select count(*) as count from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and state <> 'idle' and backend_type = 'client backend'`,
  )
}

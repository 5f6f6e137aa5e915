import { createFairSemaphore } from '../fair-semaphore.ts'
import { requestWaitLimits } from '../waiting-queue.ts'
import type { Db, Queryable } from './db.ts'

export interface FairDb {
  /** Returns a database whose statements and transactions wait for a connection of the tenant's share. */
  (db: Db, tenant: string): Db
  /** The number of waiting statements and transactions of all tenants. */
  waiting(): number
}

/** Tenants whose database is kept for their next request. */
const madeMax = 10_000

/** Returns the pool behind a tenant's database, for statements that serve several tenants at once; any other database unchanged. */
export function rootOf(db: Db): Db {
  return db.root ?? db
}

/**
 * Shares the pool's connections between tenants. A tenant has at most half of those that the others leave (`mayTakeShared`, which leaves an eighth of
 * them to tenants without one), and an eighth of the pool is left for the service itself, so that requests which wait for their own tenant's locks delay nobody else. Waiting tenants get connections in turn.
 * A waiter that times out, or finds its tenant's queue full, is refused: 503 `service-unavailable`.
 */
export function createFairDb(connectionsMax: number): FairDb {
  const max = Math.max(1, connectionsMax - Math.ceil(connectionsMax / 8))
  const { take, waiting } = createFairSemaphore(max, requestWaitLimits)
  const made = new Map<string, Db>()
  const ofTenant = (db: Db, tenant: string): Db => {
    const known = made.get(tenant)
    if (known !== undefined && rootOf(known) === rootOf(db)) return known
    const fair = withSlots(db, () => take(tenant))
    if (made.size >= madeMax) made.clear()
    made.set(tenant, fair)
    return fair
  }
  return Object.assign(ofTenant, { waiting })
}

/** The database with statements and transactions that each take a slot first. */
function withSlots(db: Db, take: () => Promise<() => void>): Db {
  const limited = async <T>(work: () => Promise<T>): Promise<T> => {
    const release = await take()
    try {
      return await work()
    } finally {
      release()
    }
  }
  return {
    ...limitedBy(db, limited),
    kind: 'db',
    root: rootOf(db),
    async tx(work, options) {
      const release = await take()
      try {
        // The slot is released first: work that the caller awaits after the commit may need one.
        return await db.tx(work, { ...options, onReleased: release })
      } finally {
        release()
      }
    },
    close: () => db.close(),
  }
}

function limitedBy(db: Db, limited: <T>(work: () => Promise<T>) => Promise<T>): Queryable {
  return {
    one: (row, statement) => limited(() => db.one(row, statement)),
    maybeOne: (row, statement) => limited(() => db.maybeOne(row, statement)),
    many: (row, statement) => limited(() => db.many(row, statement)),
    run: (statement) => limited(() => db.run(statement)),
  }
}

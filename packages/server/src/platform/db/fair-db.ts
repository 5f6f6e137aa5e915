import { failPlatform } from '../errors.ts'
import { mayTake } from '../share.ts'
import type { Db, Queryable } from './db.ts'

export interface FairDb {
  /** Returns a database whose statements and transactions wait for a connection of the tenant's share. */
  (db: Db, tenant: string): Db
  /** How many of them wait now, of all tenants. */
  waiting(): number
}

/** As long as the wait for a database connection. */
const waitMsMax = 10_000
/** Most waiters of one tenant; each has its request's body in memory. */
const waitingMax = 1_000

/** Tenants whose database is kept for their next request. */
const madeMax = 10_000

/** Returns the pool behind a tenant's database, for statements that serve several tenants at once; any other database unchanged. */
export function rootOf(db: Db): Db {
  return db.root ?? db
}

/**
 * Shares the pool's connections between tenants. A tenant has at most half of those that the others leave (`mayTake`), and an eighth is left
 * for the service itself, so that requests which wait for their own tenant's locks delay nobody else. Waiting tenants get connections in turn.
 * A waiter that times out, or finds its tenant's queue full, is refused: 503 `service-unavailable`.
 */
export function createFairDb(connectionsMax: number): FairDb {
  const max = Math.max(1, connectionsMax - Math.ceil(connectionsMax / 8))
  const { acquire, waiting } = createPlaces(max)
  const made = new Map<string, Db>()
  const fairDbOf = (db: Db, tenant: string): Db => {
    const limited = async <T>(work: () => Promise<T>): Promise<T> => {
      const release = await acquire(tenant)
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
        const release = await acquire(tenant)
        try {
          // What the caller waits for after the commit may need a place itself.
          return await db.tx(work, { ...options, onReleased: release })
        } finally {
          release()
        }
      },
      close: () => db.close(),
    }
  }
  const ofTenant = (db: Db, tenant: string): Db => {
    const known = made.get(tenant)
    if (known !== undefined && rootOf(known) === rootOf(db)) return known
    const fair = fairDbOf(db, tenant)
    if (made.size >= madeMax) made.clear()
    made.set(tenant, fair)
    return fair
  }
  return Object.assign(ofTenant, { waiting })
}

function limitedBy(db: Db, limited: <T>(work: () => Promise<T>) => Promise<T>): Queryable {
  return {
    one: (row, statement) => limited(() => db.one(row, statement)),
    maybeOne: (row, statement) => limited(() => db.maybeOne(row, statement)),
    many: (row, statement) => limited(() => db.many(row, statement)),
    run: (statement) => limited(() => db.run(statement)),
  }
}

interface TenantPlaces {
  own: number
  readonly waiting: Set<() => void>
}

/** Places for tenants, given to waiting tenants in turn. */
interface AllPlaces {
  /** Waits for a place and returns what gives it back, once. */
  acquire(tenant: string): Promise<() => void>
  waiting(): number
}

function createPlaces(max: number): AllPlaces {
  const tenants = new Map<string, TenantPlaces>()
  let taken = 0

  const take = (places: TenantPlaces): void => {
    places.own += 1
    taken += 1
  }
  /** Gives free places to waiters. The tenant that was served goes to the end, so that the next free place is another's. */
  const serve = (): void => {
    for (const [tenant, places] of tenants) {
      const [next] = places.waiting
      if (next === undefined || !mayTake({ own: places.own, taken, max })) continue
      take(places)
      next()
      tenants.delete(tenant)
      tenants.set(tenant, places)
    }
  }
  const forgetIdle = (tenant: string, places: TenantPlaces): void => {
    if (places.own === 0 && places.waiting.size === 0) tenants.delete(tenant)
  }
  const releaseOnce = (tenant: string, places: TenantPlaces): (() => void) => {
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      places.own -= 1
      taken -= 1
      forgetIdle(tenant, places)
      serve()
    }
  }
  return {
    async acquire(tenant) {
      const places = tenants.get(tenant) ?? { own: 0, waiting: new Set() }
      tenants.set(tenant, places)
      if (places.waiting.size === 0 && mayTake({ own: places.own, taken, max })) take(places)
      else await wait(places.waiting).finally(() => forgetIdle(tenant, places))
      return releaseOnce(tenant, places)
    },
    waiting: () => [...tenants.values()].reduce((sum, { waiting }) => sum + waiting.size, 0),
  }
}

/** Resolves when a place was given to the waiter. */
function wait(waiting: Set<() => void>): Promise<void> {
  if (waiting.size >= waitingMax) throw failPlatform('service-unavailable')
  return new Promise((resolve, reject) => {
    const come = (): void => {
      clearTimeout(patience)
      waiting.delete(come)
      resolve()
    }
    const patience = setTimeout(() => {
      waiting.delete(come)
      reject(failPlatform('service-unavailable'))
    }, waitMsMax)
    waiting.add(come)
  })
}

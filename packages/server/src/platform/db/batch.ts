import type { Tenant } from '../tenant.ts'
import type { Db, Tx } from './db.ts'
import { rootOf } from './fair-db.ts'

/** Most items of one batch, and most batches in progress at once. */
export interface BatchLimits {
  readonly itemsMax: number
  readonly batchesMax: number
  /**
   * Of more waiting items than `above`, a batch takes half, but at least `above`, so that the database works on one part while this process works on the
   * others. Each batch has costs of its own, so batches are whole while the process has no time to spare.
   */
  readonly halved?: { readonly above: number; readonly hasSpareTime: () => boolean }
}

interface Waiting<I, O> {
  readonly item: I
  readonly resolve: (value: O) => void
  readonly reject: (error: unknown) => void
}

/**
 * Collects concurrent requests into batches, so that one statement or node call serves them all. A single request does not wait: a batch
 * starts on the next turn of the event loop unless `batchesMax` are in progress; meanwhile the next batch fills. `run` returns its results
 * in the order of its items; a batch that throws fails its own items.
 */
export function batch<I, O>(
  limits: BatchLimits,
  run: (items: readonly I[]) => Promise<readonly O[]>,
): (item: I) => Promise<O> {
  let waiting: Waiting<I, O>[] = []
  let batchesOpen = 0
  let scheduled = false

  const start = (): void => {
    scheduled = false
    while (waiting.length > 0 && batchesOpen < limits.batchesMax) {
      const size = sizeOf(limits, waiting.length)
      const round = waiting.slice(0, size)
      waiting = waiting.slice(size)
      batchesOpen += 1
      void resolveAll(round)
    }
  }
  const resolveAll = async (round: readonly Waiting<I, O>[]): Promise<void> => {
    try {
      giveResults(round, await run(round.map((entry) => entry.item)))
    } catch (error) {
      for (const entry of round) entry.reject(error)
    } finally {
      batchesOpen -= 1
      if (waiting.length > 0) start()
    }
  }
  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      if (scheduled || batchesOpen >= limits.batchesMax) return
      scheduled = true
      setImmediate(start)
    })
}

/** The size of the next batch while so many items wait. */
function sizeOf({ itemsMax, halved }: BatchLimits, waiting: number): number {
  const whole = Math.min(itemsMax, waiting)
  if (halved === undefined || whole <= halved.above || !halved.hasSpareTime()) return whole
  return Math.max(halved.above, Math.ceil(whole / 2))
}

function giveResults<I, O>(round: readonly Waiting<I, O>[], results: readonly O[]): void {
  round.forEach((entry, index) => {
    const result = results[index]
    if (index < results.length) entry.resolve(result as O)
    else entry.reject(new Error('a batch returned fewer results than it has items'))
  })
}

/** As `batch`, for requests to a database, with separate batches per database; tenants of one pool share its batches. */
export function batchByDb<I, O>(
  limits: BatchLimits,
  run: (db: Db, items: readonly I[]) => Promise<readonly O[]>,
): (db: Db, item: I) => Promise<O> {
  const batched = new WeakMap<Db, (item: I) => Promise<O>>()
  return (requested, item) => {
    const db = rootOf(requested)
    const known = batched.get(db) ?? batch<I, O>(limits, (items) => run(db, items))
    batched.set(db, known)
    return known(item)
  }
}

/** Most tenants whose batches are kept of one database; above it the map is cleared, which only splits a batch. */
const tenantsMax = 10_000

/** As `batchByDb`, with separate batches per tenant, so that a locked row of one tenant delays no other. `run` gets the database of one of its requests. */
export function batchByTenant<I, O>(
  limits: BatchLimits,
  run: (db: Db, tenant: Tenant, items: readonly I[]) => Promise<readonly O[]>,
): (at: { readonly db: Db; readonly tenant: Tenant }, item: I) => Promise<O> {
  const batched = new WeakMap<Db, Map<string, (item: I) => Promise<O>>>()
  return ({ db, tenant }, item) => {
    const root = rootOf(db)
    const ofTenants = batched.get(root) ?? new Map<string, (item: I) => Promise<O>>()
    batched.set(root, ofTenants)
    const name = `${tenant.organisationId}/${tenant.environment}`
    const known = ofTenants.get(name) ?? batch<I, O>(limits, (items) => run(db, tenant, items))
    if (ofTenants.size >= tenantsMax) ofTenants.clear()
    ofTenants.set(name, known)
    return known(item)
  }
}

/** Collects what a transaction requests without waiting in between, so that one statement serves it. `run` returns its results in the order of its items. */
export function batchByTx<I, O>(
  run: (tx: Tx, items: readonly I[]) => Promise<readonly O[]>,
): (tx: Tx, item: I) => Promise<O> {
  const open = new WeakMap<Tx, { readonly items: I[]; readonly results: Promise<readonly O[]> }>()
  const begin = (tx: Tx) => {
    const items: I[] = []
    const results = Promise.resolve().then(() => {
      open.delete(tx)
      return run(tx, items)
    })
    const begun = { items, results }
    open.set(tx, begun)
    return begun
  }
  return async (tx, item) => {
    const { items, results } = open.get(tx) ?? begin(tx)
    const place = items.push(item) - 1
    const all = await results
    if (place >= all.length) throw new Error('a batch returned fewer results than it has items')
    return all[place] as O
  }
}

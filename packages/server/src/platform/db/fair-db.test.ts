import { expect, test } from 'vitest'
import { z } from 'zod'
import type { Db, Tx } from './db.ts'
import { sql } from './db.ts'
import { createFairDb } from './fair-db.ts'

/** One tenant's requests that wait for its own lock took every connection of the pool. */

const One = z.number()

/** A pool of `max` connections. It refuses at once where the real one waits, so that a test sees it. */
class ToyPool implements Db {
  readonly kind = 'db'
  peak = 0
  used = 0
  readonly #max: number

  constructor(max: number) {
    this.#max = max
  }

  one = <S extends z.ZodType>(row: S) => this.#counted(async () => row.parse(1))
  maybeOne = <S extends z.ZodType>(row: S) => this.#counted(async () => row.parse(1))
  many = <S extends z.ZodType>(row: S) => this.#counted(async () => [row.parse(1)])
  run = () => this.#counted(async () => 1)
  close = () => Promise.resolve()

  async tx<T>(work: (tx: Tx) => Promise<T>, options?: { readonly onReleased?: () => void }): Promise<T> {
    const waits: (() => Promise<void>)[] = []
    const noWrite = (): void => undefined
    const { one, maybeOne, many, run } = this
    const beforeReturn = (wait: () => Promise<void>): void => void waits.push(wait)
    const result = await this.#counted(() =>
      work({ kind: 'tx', one, maybeOne, many, run, writeLast: noWrite, afterCommit: noWrite, beforeReturn }),
    )
    options?.onReleased?.()
    await Promise.all(waits.map((wait) => wait()))
    return result
  }

  async #counted<T>(work: () => Promise<T>): Promise<T> {
    if (this.used >= this.#max) throw new Error('no connection is free')
    this.used += 1
    this.peak = Math.max(this.peak, this.used)
    try {
      return await work()
    } finally {
      this.used -= 1
    }
  }
}

const select = sql`select 1`

test('transactions of one tenant that wait leave connections for every other tenant', async () => {
  const pool = new ToyPool(16)
  const fair = createFairDb(16)
  const gate = Promise.withResolvers<void>()
  const waiting = Array.from({ length: 200 }, () => fair(pool, 'org_1').tx(() => gate.promise))
  for (const tenant of ['org_2', 'org_3', 'org_4']) expect(await fair(pool, tenant).one(One, select)).toBe(1)
  expect(pool.peak).toBeLessThanOrEqual(8)
  gate.resolve()
  await Promise.all(waiting)
})

test('several tenants that take all they get still leave a connection for the next, and the service its own', async () => {
  const pool = new ToyPool(16)
  const fair = createFairDb(16)
  const gate = Promise.withResolvers<void>()
  const waiting = [1, 2, 3].flatMap((number) =>
    Array.from({ length: 50 }, () => fair(pool, `org_${number}`).tx(() => gate.promise)),
  )
  expect(await fair(pool, 'org_9').one(One, select)).toBe(1)
  expect(pool.peak).toBeLessThanOrEqual(14)
  gate.resolve()
  await Promise.all(waiting)
  expect(pool.used).toBe(0)
})

test('a free connection goes to each waiting tenant in turn', async () => {
  const pool = new ToyPool(1)
  const fair = createFairDb(1)
  const served: string[] = []
  const ask = (tenant: string) => fair(pool, tenant).tx(async () => void served.push(tenant))
  const first = Promise.withResolvers<void>()
  const busy = fair(pool, 'busy').tx(() => first.promise)
  const requested = [...Array.from({ length: 3 }, () => ask('busy')), ask('quiet')]
  first.resolve()
  await Promise.all([busy, ...requested])
  expect(served.indexOf('quiet')).toBeLessThan(2)
})

test('work after the commit may use the connection that the transaction had', async () => {
  const fair = createFairDb(1)(new ToyPool(1), 'org_1')
  let after: unknown
  await fair.tx(async (tx) => {
    tx.beforeReturn(async () => {
      after = await fair.one(One, select)
    })
  })
  expect(after).toBe(1)
})

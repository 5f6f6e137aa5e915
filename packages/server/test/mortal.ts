import type { Db } from '../src/platform/db/db.ts'

/** What a process throws that is gone. */
export class Death extends Error {}

export interface Life {
  /** Does it as a step of this process: it may be gone before it, and after it. */
  around<T>(doing: () => Promise<T>): Promise<T>
  isDead(): boolean
}

/** At its n-th step everything fails, and goes on failing, as for a process that is gone. */
export function lifeOf(lifetime: number): Life {
  let steps = 0
  const step = (): void => {
    steps += 1
    if (steps >= lifetime) throw new Death('this process is gone')
  }
  return {
    async around(doing) {
      step()
      const result = await doing()
      step()
      return result
    },
    isDead: () => steps >= lifetime,
  }
}

/** A database of whose statements and transactions each is a step. */
export function mortalDb(db: Db, { around }: Life): Db {
  return {
    ...db,
    one: (row, statement) => around(() => db.one(row, statement)),
    maybeOne: (row, statement) => around(() => db.maybeOne(row, statement)),
    many: (row, statement) => around(() => db.many(row, statement)),
    run: (statement) => around(() => db.run(statement)),
    // Also at the end of the work and before its commit, so that all of it is rolled back.
    tx: (doing) => around(() => db.tx((tx) => around(() => doing(tx)))),
  }
}

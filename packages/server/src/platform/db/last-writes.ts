import type { Queryable, Sql } from './statement.ts'

/**
 * A write to rows that many transactions change, such as an organisation's budget or the head of its audit log. Every transaction makes it after
 * all others, of everything that was added to it, so that it locks such a row for a short time and in one order: those of a lower rank first.
 */
export interface LastWrite<T> {
  readonly rank: number
  /** Returns the statement that makes the write, so that it can be sent together with the commit. */
  prepare(tx: Queryable, items: readonly T[]): Promise<Sql | undefined>
}

/** The writes that a transaction makes at its end, in the order of their ranks. */
export function createLastWrites() {
  const writes = new Map<LastWrite<unknown>, unknown[]>()
  return {
    add<T>(write: LastWrite<T>, items: readonly T[]): void {
      const known = writes.get(write as LastWrite<unknown>) ?? []
      writes.set(write as LastWrite<unknown>, [...known, ...items])
    },
    /** Makes all writes but the last, and returns the statement of that one. */
    async run(tx: Queryable): Promise<Sql | undefined> {
      let prepared: Sql | undefined
      for (const [write, items] of [...writes].sort(([left], [right]) => left.rank - right.rank)) {
        if (items.length === 0) continue
        if (prepared !== undefined) await tx.run(prepared)
        prepared = await write.prepare(tx, items)
      }
      return prepared
    },
  }
}

import type { Db } from '../../platform/db/db.ts'
import { rootOf } from '../../platform/db/fair-db.ts'
import { pause } from '../../platform/work/loop.ts'
import { listDecided, type TransferId } from './store.ts'

const pollMs = 30

/** The waiters of one process on one database: one query serves all of them. */
class Watch {
  readonly #db: Db
  readonly #waiting = new Map<TransferId, Set<() => void>>()
  #polling = false
  #woken = Promise.withResolvers<void>()

  constructor(db: Db) {
    this.#db = db
  }

  /** Resolves when the transfer has an outcome, or the time is over. */
  async decided(transferId: TransferId, waitMs: number): Promise<void> {
    if (waitMs <= 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const waiters = this.#waiting.get(transferId) ?? new Set()
    this.#waiting.set(transferId, waiters.add(resolve))
    const timer = setTimeout(resolve, waitMs)
    void this.#poll()
    await promise
    clearTimeout(timer)
    waiters.delete(resolve)
    if (waiters.size === 0 && this.#waiting.get(transferId) === waiters) this.#waiting.delete(transferId)
  }

  /** Notifies that some transfer changed: polls immediately. */
  wake(): void {
    this.#woken.resolve()
  }

  /** Resolves the waiters of transfers that have an outcome, without another query. */
  resolve(transferIds: readonly TransferId[]): void {
    for (const transferId of transferIds) {
      for (const resolve of this.#waiting.get(transferId) ?? []) resolve()
      this.#waiting.delete(transferId)
    }
  }

  async #untilWoken(): Promise<void> {
    const waiting = new AbortController()
    await Promise.race([this.#woken.promise, pause(pollMs, waiting.signal)])
    waiting.abort()
    this.#woken = Promise.withResolvers()
  }

  /** Polls while anyone waits. A failed query is followed by the next; a waiter that times out gets the state from the row. */
  async #poll(): Promise<void> {
    if (this.#polling) return
    this.#polling = true
    while (this.#waiting.size > 0) {
      await this.#untilWoken()
      const decided = await listDecided(this.#db, [...this.#waiting.keys()]).catch(() => [])
      this.resolve(decided)
    }
    this.#polling = false
  }
}

const watches = new WeakMap<Db, Watch>()

/** Waits until a block decides a transfer, for at most this long. */
export async function waitForOutcome(db: Db, transferId: TransferId, waitMs: number): Promise<void> {
  const root = rootOf(db)
  const watch = watches.get(root) ?? new Watch(root)
  watches.set(root, watch)
  await watch.decided(transferId, waitMs)
}

/** Wakes the waiters of this process; other processes poll. Call it after the commit. */
export function wakeWaiting(db: Db): void {
  watches.get(rootOf(db))?.wake()
}

/** Resolves the waiters of this process for transfers that blocks have decided. Call it after the commit. */
export function resolveWaiting(db: Db, transferIds: readonly TransferId[]): void {
  watches.get(rootOf(db))?.resolve(transferIds)
}

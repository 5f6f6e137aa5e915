import type { Db } from '../../platform/db/db.ts'
import { pause } from '../../platform/work/loop.ts'
import { listDecided, type TransferId } from './store.ts'

const lookMs = 30

/** Those of one process that wait for transfers of one database: one look at it serves all of them. */
class Watch {
  readonly #db: Db
  readonly #waiting = new Map<TransferId, Set<() => void>>()
  #looking = false
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
    void this.#look()
    await promise
    clearTimeout(timer)
    waiters.delete(resolve)
    if (waiters.size === 0 && this.#waiting.get(transferId) === waiters) this.#waiting.delete(transferId)
  }

  /** Something was written of some transfer: looks at once. */
  wake(): void {
    this.#woken.resolve()
  }

  /** These have an outcome: whoever waits for them need not look. */
  tell(transferIds: readonly TransferId[]): void {
    for (const transferId of transferIds) {
      for (const resolve of this.#waiting.get(transferId) ?? []) resolve()
      this.#waiting.delete(transferId)
    }
  }

  async #untilWoken(): Promise<void> {
    const waiting = new AbortController()
    await Promise.race([this.#woken.promise, pause(lookMs, waiting.signal)])
    waiting.abort()
    this.#woken = Promise.withResolvers()
  }

  /** Looks while anybody waits. A look that fails is followed by the next: whoever waits too long is answered by the row itself. */
  async #look(): Promise<void> {
    if (this.#looking) return
    this.#looking = true
    while (this.#waiting.size > 0) {
      await this.#untilWoken()
      const decided = await listDecided(this.#db, [...this.#waiting.keys()]).catch(() => [])
      this.tell(decided)
    }
    this.#looking = false
  }
}

const watches = new WeakMap<Db, Watch>()

/** Waits until a block says what became of a transfer, this long at most. */
export async function waitForOutcome(db: Db, transferId: TransferId, waitMs: number): Promise<void> {
  const watch = watches.get(db) ?? new Watch(db)
  watches.set(db, watch)
  await watch.decided(transferId, waitMs)
}

/** Wakes those of this process who wait; elsewhere they look by themselves. Called after the commit of what they wait for. */
export function wakeWaiting(db: Db): void {
  watches.get(db)?.wake()
}

/** Answers those of this process who wait for these, of which blocks have said what became of them. After the commit too. */
export function tellWaiting(db: Db, transferIds: readonly TransferId[]): void {
  watches.get(db)?.tell(transferIds)
}

import type { Db } from '../../platform/db/db.ts'
import { pause } from '../../platform/work/loop.ts'
import type { OutcomeWaiters } from './ports.ts'
import { listDecided, type TransferId } from './store.ts'

const pollMs = 30

/** One query, repeated while anyone waits, serves all waiters. */
export class TransferWaiters implements OutcomeWaiters {
  readonly #db: Db
  readonly #waiting = new Map<TransferId, Set<() => void>>()
  #polling = false
  #woken = Promise.withResolvers<void>()

  constructor(db: Db) {
    this.#db = db
  }

  async wait(transferId: TransferId, waitMs: number): Promise<void> {
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

  wake(): void {
    this.#woken.resolve()
  }

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

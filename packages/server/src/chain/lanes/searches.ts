import type { Address } from '@purser/protocol'

/** A transaction whose nonce another one used. */
interface Lost {
  readonly id: string
  readonly sender: Address
}

/** Passed to a search: a signal that stops it, and a function that gives its place in its account's share back while it only waits. */
export interface OneSearch {
  readonly stopped: AbortSignal
  wait(): void
}

interface Running {
  readonly sender: Address
  readonly work: Promise<void>
  readonly stopping: AbortController
}

/** Searches that one driver makes for lost transactions, beside its passes: a node that does not end its search delays no other transaction. */
export interface Searches {
  isRunning(id: string): boolean
  /**
   * Begins a search, unless the transaction already has one, or its account or the network has its share of searches. The work does not reject, and ends
   * soon once the signal is aborted. It calls `wait` when it only waits for nodes that answer late: then it is no part of its account's share.
   */
  begin(lost: Lost, work: (search: OneSearch) => Promise<void>): void
  /** Stops the searches for these transactions. Call it before their new state is stored, so that a search applies nothing that it read for an earlier one. */
  end(ids: readonly string[]): void
  /** Resolves when the searches in progress have ended. */
  settled(): Promise<void>
  /** Stops the searches in progress and all later ones. Resolves when they have ended. */
  stop(): Promise<void>
}

/** Most searches of a network at once, most of one account that do not wait, and most of one account in all. */
const [searchesMax, perSenderMax, perSenderMaxInAll] = [32, 4, 16]

export function createSearches(): Searches {
  const running = new Map<string, Running>()
  const waiting = new Set<string>()
  let isStopped = false
  const settled = async (): Promise<void> => {
    await Promise.all([...running.values()].map(({ work }) => work))
  }
  return {
    settled,
    isRunning: (id) => running.has(id),
    begin({ id, sender }, work) {
      const ofSender = [...running].filter(([, one]) => one.sender === sender).map(([known]) => known)
      const isFull =
        ofSender.length >= perSenderMaxInAll || ofSender.filter((known) => !waiting.has(known)).length >= perSenderMax
      if (isStopped || running.has(id) || running.size >= searchesMax || isFull) return
      const stopping = new AbortController()
      const remove = (): void => {
        running.delete(id)
        waiting.delete(id)
      }
      const search = { stopped: stopping.signal, wait: () => void waiting.add(id) }
      running.set(id, { sender, stopping, work: work(search).finally(remove) })
    },
    end(ids) {
      for (const id of ids) running.get(id)?.stopping.abort()
    },
    async stop() {
      isStopped = true
      for (const { stopping } of running.values()) stopping.abort()
      await settled()
    },
  }
}

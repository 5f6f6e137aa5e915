import type { Address } from '@purser/protocol'

/** A transaction whose nonce another one used. */
interface Lost {
  readonly id: string
  readonly sender: Address
}

/** Searches that one driver makes for lost transactions, beside its passes: a node that does not end its search delays no other transaction. */
export interface Searches {
  isRunning(id: string): boolean
  /**
   * Begins a search, unless the transaction already has one, or its account or the network has its share of searches. The work does not reject, and ends
   * soon once the signal is aborted.
   */
  begin(lost: Lost, work: (stopped: AbortSignal) => Promise<void>): void
  /** Resolves when the searches in progress have ended. */
  settled(): Promise<void>
  /** Stops the searches in progress and all later ones. Resolves when they have ended. */
  stop(): Promise<void>
}

/** Most searches of a network at once, and most of one account. */
const [searchesMax, perSenderMax] = [32, 4]

export function createSearches(): Searches {
  const running = new Map<string, { readonly sender: Address; readonly work: Promise<void> }>()
  const stopping = new AbortController()
  const settled = async (): Promise<void> => {
    await Promise.all([...running.values()].map(({ work }) => work))
  }
  return {
    settled,
    isRunning: (id) => running.has(id),
    begin({ id, sender }, work) {
      const ofSender = [...running.values()].filter((one) => one.sender === sender)
      if (running.has(id) || running.size >= searchesMax || ofSender.length >= perSenderMax) return
      if (stopping.signal.aborted) return
      running.set(id, { sender, work: work(stopping.signal).finally(() => running.delete(id)) })
    },
    async stop() {
      stopping.abort()
      await settled()
    },
  }
}

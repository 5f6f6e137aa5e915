/** The state of handler runs in this process, by credential and request. */
export interface Runs {
  /** `running` while the handler runs or its payment is being settled; `unsold` if it ended without payment. */
  readonly stateOf: (key: string) => 'running' | 'unsold' | undefined
  /** Records a run. False if one with this key is already running. */
  readonly begin: (key: string) => boolean
  /** Call once for each recorded run. */
  readonly end: (key: string, how: 'over' | 'unsold') => void
}

const unsoldMax = 1_000

/**
 * Tracks the handlers that run in this process, so that a payer who repeats a request waits and does not pay twice.
 * Also tracks the last 1,000 runs that were not charged; their payers need a new payment.
 */
export function openRuns(): Runs {
  const running = new Set<string>()
  const unsold = new Set<string>()
  return {
    stateOf: (key) => (running.has(key) ? 'running' : unsold.has(key) ? 'unsold' : undefined),
    begin: (key) => {
      if (running.has(key)) return false
      running.add(key)
      unsold.delete(key)
      return true
    },
    end: (key, how) => {
      running.delete(key)
      if (how === 'unsold') unsold.add(key)
      for (const oldest of unsold) {
        if (unsold.size <= unsoldMax) break
        unsold.delete(oldest)
      }
    },
  }
}

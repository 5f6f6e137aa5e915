/** What became of requests whose handler ran here, by the credential and the request that it came with. */
export interface Runs {
  /** `running` while the handler runs or its payment is being settled; `unsold` when it ended without being paid for. */
  readonly stateOf: (key: string) => 'running' | 'unsold' | undefined
  /** Takes note of a run; false where one with this key runs already. */
  readonly begin: (key: string) => boolean
  /** Call once for each run that has begun. */
  readonly end: (key: string, how: 'over' | 'unsold') => void
}

const unsoldMax = 1_000

/**
 * Which handlers run in this process, so that a payer who sends a request again meanwhile waits and does not pay twice; and the last 1,000
 * that sold nothing, whose payers are not charged and need a new payment.
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

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

const windowMs = 60_000
const payersMax = 10_000

/** Counts handler runs that are not paid: their payers left, or the payments cannot be settled. */
export interface AbandonedRuns {
  readonly count: (payer: string | null) => void
  /**
   * Whether a payer has reached the limit of abandoned runs per minute. The payer is undefined if the credential does
   * not name one.
   */
  readonly isOver: (payer: string | undefined) => boolean
}

/**
 * Allows at most `runsMax` abandoned runs per payer and minute, in this process. The last 10,000 such payers are
 * tracked.
 */
export function openAbandonedRuns(runsMax: number, now: () => number = Date.now): AbandonedRuns {
  const payers = new Map<string, number[]>()
  const recent = (payer: string) => (payers.get(payer.toLowerCase()) ?? []).filter((at) => at > now() - windowMs)
  return {
    count: (payer) => {
      if (payer === null) return
      const runs = [...recent(payer), now()]
      payers.delete(payer.toLowerCase())
      payers.set(payer.toLowerCase(), runs.slice(-runsMax))
      for (const oldest of payers.keys()) {
        if (payers.size <= payersMax) break
        payers.delete(oldest)
      }
    },
    isOver: (payer) => payer !== undefined && recent(payer).length >= runsMax,
  }
}

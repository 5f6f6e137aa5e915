const windowMs = 60_000
const payersMax = 10_000

/** Counts handler runs that their payers abandoned, and which therefore are not paid. */
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

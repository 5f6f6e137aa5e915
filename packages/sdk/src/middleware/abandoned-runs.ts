const windowMs = 60_000
const payersMax = 10_000

/** Counts the runs of a handler whose payer left before it ended, which nobody pays for. */
export interface AbandonedRuns {
  readonly count: (payer: string | null) => void
  /** Whether a payer has abandoned as many runs within a minute as are allowed; undefined for a payer whom the credential does not name. */
  readonly isOver: (payer: string | undefined) => boolean
}

/** At most `runsMax` abandoned runs for one payer in a minute, in this process; the 10,000 payers that abandoned last are known. */
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

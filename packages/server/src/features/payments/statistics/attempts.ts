import { instantOf } from '../../../platform/clock.ts'
import type { Deps as PlatformDeps } from '../../../platform/ctx.ts'
import type { RecurringTask } from '../../../platform/recurring-task.ts'
import type { AttemptCounts, Deps } from '../ports.ts'
import { addAttempts, type CountedAttempts, deleteOldAttempts } from './attempt-store.ts'

/** How long counts are collected before they are written together. */
const writeMs = 2_000
const minuteMs = 60_000
/** Most counters (tenant and minute) in memory; counts for further ones are dropped until the next write. */
const waitingMax = 20_000

/**
 * Counts in memory and writes sums every two seconds, so that a challenge still writes nothing. What a killed process has counted since its last write is
 * lost: these are statistics, and no decision reads them.
 */
export function createAttemptCounts({ db, clock, log }: Pick<PlatformDeps, 'db' | 'clock' | 'log'>): AttemptCounts {
  let waiting = new Map<string, CountedAttempts>()
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> | undefined
  const write = async (): Promise<void> => {
    clearTimeout(timer)
    timer = undefined
    const counted = [...waiting.values()]
    waiting = new Map()
    if (counted.length === 0) return
    try {
      await addAttempts(db, counted)
    } catch (err) {
      log.warn({ err }, 'challenges and refused credentials were left out of the statistics')
    }
  }
  // One write at a time: while the database does not respond, what is counted waits within `waitingMax`.
  const writeNext = (): void => {
    writing = write().finally(() => {
      writing = undefined
      if (waiting.size > 0) startTimer()
    })
  }
  const startTimer = (): void => {
    if (writing === undefined) timer ??= setTimeout(writeNext, writeMs).unref()
  }
  return {
    add(tenant, added) {
      const at = Math.floor(clock.now().getTime() / minuteMs) * minuteMs
      const key = `${tenant.organisationId} ${tenant.environment} ${at}`
      const before = waiting.get(key)
      if (before === undefined && waiting.size >= waitingMax) return
      const { challenges = 0, refused = 0 } = before ?? {}
      waiting.set(key, {
        organisationId: tenant.organisationId,
        environment: tenant.environment,
        at: instantOf(at),
        challenges: challenges + ('challenges' in added ? added.challenges : 0),
        refused: refused + ('refused' in added ? added.refused : 0),
      })
      startTimer()
    },
    async stop() {
      await writing
      await write()
    },
  }
}

/** How far back the counts reach. */
const attemptsKeptDays = 31

/** Deletes counts of minutes that are older than that, in batches. Running it again is harmless. */
export const deleteExpiredAttempts: RecurringTask<Deps> = {
  name: 'payments.sweep-attempts',
  everyMs: 3_600_000,
  run: async ({ db, clock }) => {
    await deleteOldAttempts(db, instantOf(clock.now().getTime() - attemptsKeptDays * 86_400_000))
  },
}

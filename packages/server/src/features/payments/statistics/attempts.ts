import { instantOf } from '../../../platform/clock.ts'
import type { Deps as PlatformDeps, Tenant } from '../../../platform/ctx.ts'
import type { RecurringTask } from '../../../platform/recurring-task.ts'
import type { AttemptCounts, Deps } from '../ports.ts'
import { addAttempts, type CountedAttempts, deleteOldAttempts } from './attempt-store.ts'

/** Milliseconds for which counts are collected before they are written together. */
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
    if (counted.length > 0)
      await addAttempts(db, counted).catch((err: unknown) =>
        log.warn({ err }, 'challenges and refused credentials were left out of the statistics'),
      )
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
      addTo(waiting, tenant, clock.now(), added)
      startTimer()
    },
    async stop() {
      await writing
      await write()
    },
  }
}

/** Adds to the tenant's counter of the minute. A further counter than `waitingMax` is dropped. */
function addTo(
  counters: Map<string, CountedAttempts>,
  { organisationId, environment }: Tenant,
  now: Date,
  added: { readonly challenges?: number; readonly refused?: number },
): void {
  const at = Math.floor(now.getTime() / minuteMs) * minuteMs
  const key = `${organisationId} ${environment} ${at}`
  const before = counters.get(key)
  if (before === undefined && counters.size >= waitingMax) return
  counters.set(key, {
    organisationId,
    environment,
    at: instantOf(at),
    challenges: (before?.challenges ?? 0) + (added.challenges ?? 0),
    refused: (before?.refused ?? 0) + (added.refused ?? 0),
  })
}

/** Days that the counts reach back. */
const attemptsKeptDays = 31

/** Deletes counts of minutes that are older than that, in batches. Running it again is harmless. */
export const deleteExpiredAttempts: RecurringTask<Deps> = {
  name: 'payments.sweep-attempts',
  everyMs: 3_600_000,
  run: async (ctx) => {
    await deleteOldAttempts(ctx, instantOf(ctx.clock.now().getTime() - attemptsKeptDays * 86_400_000))
  },
}

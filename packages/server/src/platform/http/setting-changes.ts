import type { Clock } from '../clock.ts'
import { failPlatform } from '../errors.ts'
import { createLimiter } from './limits.ts'

/**
 * How many changes of settings one owner may make: 5,000 at once, and then one a second. Each leaves a record in the audit log, and many leave a
 * row, which nothing deletes. The rates of requests alone would allow tens of millions a day.
 */
const settingLimit = { perSecond: 1, burst: 5_000 }

/** Limits the changes of settings of each owner. */
export interface SettingChanges {
  /** Throws 429 while the owner has none left. */
  check(owner: string): void
  /** Counts a change that was made; nothing for an operation that changes no setting. A refused request counts nothing. */
  count(owner: string, cost: number | undefined): void
}

/** Creates the limit of a process. */
export function limitSettingChanges(clock: Clock): SettingChanges {
  const changes = createLimiter(settingLimit, clock)
  return {
    check(owner) {
      const { admitted, resetSeconds } = changes(owner, 0)
      if (!admitted) throw failPlatform('rate-limit-exceeded', { retryAfterSeconds: resetSeconds })
    },
    count(owner, cost) {
      if (cost !== undefined) changes.owe(owner, cost)
    },
  }
}

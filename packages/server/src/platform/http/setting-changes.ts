import type { Clock } from '../clock.ts'
import { failPlatform } from '../errors.ts'
import { createLimiter } from './limits.ts'

/**
 * How many changes of settings one owner may make: 5,000 at once, and then one a second. Each leaves a record in the audit log, and many leave a
 * row, which nothing deletes. The rates of requests alone would allow tens of millions a day.
 */
const settingLimit = { perSecond: 1, burst: 5_000 }

/** Counts a change of an owner; throws 429 beyond the limit. */
export type CountSetting = (owner: string, cost: number) => void

/** Creates the limit of a process. */
export function limitSettingChanges(clock: Clock): CountSetting {
  const changes = createLimiter(settingLimit, clock)
  return (owner, cost) => {
    const { admitted, resetSeconds } = changes(owner, cost)
    if (!admitted) throw failPlatform('rate-limit-exceeded', { retryAfterSeconds: resetSeconds })
  }
}

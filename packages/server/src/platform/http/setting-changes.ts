import type { Clock } from '../clock.ts'
import { type Caller, callerId } from '../ctx.ts'
import { failPlatform } from '../errors.ts'
import type { Operation } from '../operation.ts'
import { readJson } from './json.ts'
import { createLimiter, type Limiter } from './limits.ts'

/**
 * How many changes of settings the keys of one owner may make: 5,000 at once, and then one a second. Each leaves a record in the audit log, and many
 * leave a row, which nothing deletes. The rates of requests alone would allow tens of millions a day.
 */
const ownerLimit = { perSecond: 1, burst: 5_000 }
/** How many of them one key may make, so that a leaked one leaves most to the others; and how many a person may make, whom no key stops. */
const callerLimit = { perSecond: 1 / 2, burst: 2_000 }

/** Limits the changes of settings of each owner and of each caller. */
export interface SettingChanges {
  /**
   * Counts a change before it is made; nothing without a cost. Throws 429 if the caller has not so many left. Returns what takes the count back, for
   * a call that changed nothing.
   */
  take(caller: Pick<Caller, 'actor' | 'placeOwner'>, cost: number | undefined): () => void
}

/** Creates the limit of a process. */
export function limitSettingChanges(clock: Clock): SettingChanges {
  const ofOwners = createLimiter(ownerLimit, clock)
  const ofCallers = createLimiter(callerLimit, clock)
  return {
    take({ actor, placeOwner }, cost) {
      if (cost === undefined) return () => undefined
      const counted: { readonly limiter: Limiter; readonly who: string }[] = [
        { limiter: ofCallers, who: callerId(actor) },
      ]
      if (actor.kind !== 'person') counted.push({ limiter: ofOwners, who: placeOwner })
      const giveBack: (() => void)[] = []
      const giveAllBack = (): void => {
        for (const one of giveBack) one()
      }
      for (const { limiter, who } of counted) {
        const { admitted, resetSeconds } = limiter(who, cost)
        if (admitted) giveBack.push(() => limiter.owe(who, -cost))
        else {
          giveAllBack()
          throw failPlatform('rate-limit-exceeded', { retryAfterSeconds: resetSeconds })
        }
      }
      return giveAllBack
    },
  }
}

/** Larger bodies are not read twice: they count. */
const smallBytesMax = 1_024

/** Returns what a call with this body takes of the limits; undefined if nothing. A body that is not valid takes what any other does. */
export function settingCostOf(
  { settingCost, leavesNothing, input }: Pick<Operation, 'settingCost' | 'leavesNothing' | 'input'>,
  body: Uint8Array,
): number | undefined {
  if (leavesNothing === undefined || body.length === 0 || body.length > smallBytesMax) return settingCost
  let given: unknown
  try {
    given = readJson(body)
  } catch {
    return settingCost
  }
  const parsed = input?.safeParse(given)
  return parsed?.success === true && leavesNothing(parsed.data as never) ? undefined : settingCost
}

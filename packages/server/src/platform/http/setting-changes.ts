import type { Clock } from '../clock.ts'
import { type Caller, callerId } from '../ctx.ts'
import { failPlatform } from '../errors.ts'
import type { Operation } from '../operation.ts'
import { readJson } from './json.ts'
import { createLimiter, type Limiter } from './limits.ts'

/**
 * Changes of settings that the keys of one owner may make in one environment: 5,000 at once, and then one a second. Each leaves a record in the
 * audit log, and many leave a row, which nothing deletes. The rates of requests alone would allow tens of millions a day.
 */
const ownerLimit = { perSecond: 1, burst: 5_000 }
/** The limit of one key, so that a leaked key cannot use up the limit of its owner, and of one person. */
const callerLimit = { perSecond: 1 / 2, burst: 2_000 }

type Changing = Pick<Caller, 'actor' | 'shareOwner' | 'tenant'>

/** Limits the changes of settings of each owner in each environment, so that test keys cannot use up the limit of live keys, and of each caller. */
export interface SettingChanges {
  /**
   * Counts a change before it is made. Does nothing if `cost` is undefined. Throws 429 if the caller has used up its limit. Returns a function that
   * undoes the count, for a call that changed nothing.
   */
  take(caller: Changing, cost: number | undefined): () => void
}

/** Creates the limit of a process. */
export function limitSettingChanges(clock: Clock): SettingChanges {
  const ofOwners = createLimiter(ownerLimit, clock)
  const ofCallers = createLimiter(callerLimit, clock)
  return {
    take({ actor, shareOwner, tenant: { environment } }, cost) {
      if (cost === undefined) return () => undefined
      const counted: { readonly limiter: Limiter; readonly who: string }[] = [
        { limiter: ofCallers, who: callerId(actor) },
      ]
      if (actor.kind !== 'person') counted.push({ limiter: ofOwners, who: `${shareOwner}/${environment}` })
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

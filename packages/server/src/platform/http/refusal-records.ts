import type { Clock } from '../clock.ts'
import { type Caller, callerId } from '../ctx.ts'
import { createLimiter } from './limits.ts'

/**
 * Refusals that leave a record each: 2,000 of one caller at once and then one in two seconds, and 5,000 of the callers of one owner in one
 * environment and then one a second. Nothing deletes a record.
 */
const callerLimit = { perSecond: 1 / 2, burst: 2_000 }
const ownerLimit = { perSecond: 1, burst: 5_000 }
/** Most callers whose refusals without a record are counted. */
const countedMax = 10_000

type Refused = Pick<Caller, 'actor' | 'shareOwner' | 'tenant'>

/** Limits the records of refused movements. It has no part in the limit of changes of settings: keys that only spend cannot use that up. */
export interface RefusalRecords {
  /** Counts a refusal. Returns how many of the caller's have left no record since its last one; undefined if this one leaves none either. */
  take(caller: Refused): number | undefined
}

/** Creates the limit of a process. */
export function limitRefusalRecords(clock: Clock): RefusalRecords {
  const [ofCallers, ofOwners] = [createLimiter(callerLimit, clock), createLimiter(ownerLimit, clock)]
  const unrecorded = new Map<string, number>()
  return {
    take({ actor, shareOwner, tenant: { organisationId, environment } }) {
      const caller = callerId(actor)
      const name = `${organisationId}/${environment} ${caller}`
      const before = unrecorded.get(name) ?? 0
      const isOwn = ofCallers(caller).admitted
      if (isOwn && ofOwners(`${shareOwner}/${environment}`).admitted) {
        unrecorded.delete(name)
        return before
      }
      if (isOwn) ofCallers.owe(caller, -1)
      if (before > 0 || unrecorded.size < countedMax) unrecorded.set(name, before + 1)
      return
    },
  }
}

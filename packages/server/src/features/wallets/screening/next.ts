import type { ScreeningResult } from '../../../partners/screening/port.ts'
import { instantOf } from '../../../platform/clock.ts'

const dayMs = 86_400_000
/** Screenings of one day are due at times of their own within these two hours, so that they do not all come at once. */
const spreadMs = 7_200_000
const againMsFirst = 60_000
const againMsMax = 3_600_000

/** What is already known of an address. */
export interface Known {
  readonly amlStatus: ScreeningResult
  /** Screenings that began before this one was drawn know less than what is written. */
  readonly amlTicket: bigint
}

/**
 * What a screening changes: the new status, or `again` when it must not be believed. Only a clear result of a screening that began
 * after the flag was written takes it away, and that nobody could say changes no flag. A flag is taken whenever it began.
 */
export function nextStatus(
  known: Known,
  found: { readonly result: ScreeningResult; readonly ticket: bigint; readonly isCurrentList: boolean },
): ScreeningResult | 'again' {
  if (!found.isCurrentList) return 'again'
  if (found.result === 'flagged') return 'flagged'
  if (found.ticket < known.amlTicket) return 'again'
  return known.amlStatus === 'flagged' && found.result === 'pending' ? 'flagged' : found.result
}

/**
 * When to look again: daily, at a time that the id spreads; while nobody can say, sooner, and the more rarely the longer that
 * lasts (`sinceMs` since the last word on the address, or since it was registered).
 */
export function dueAfter(
  now: Date,
  { id, result, sinceMs }: { readonly id: string; readonly result: ScreeningResult; readonly sinceMs: number },
): Date {
  if (result === 'pending')
    return instantOf(now.getTime() + Math.min(againMsMax, Math.max(againMsFirst, Math.floor(sinceMs / 4))))
  return instantOf(now.getTime() + dayMs - (hashOf(id) % spreadMs))
}

function hashOf(text: string): number {
  let hash = 0
  for (let index = 0; index < text.length; index++) hash = (hash * 31 + text.charCodeAt(index)) % 2_147_483_647
  return hash
}

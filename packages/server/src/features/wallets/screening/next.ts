import type { OracleAnswer, Screened, ScreeningResult } from '../../../partners/screening/port.ts'
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
 * When to screen again: daily, at a time that the id spreads; while the result is `pending`, after a quarter of `sinceMs` (since the last result
 * other than pending, or since the address was registered), at least a minute. An oracle that does not answer is queried again after an hour at
 * most. Where it answered `clean` or there is none, there is no such bound: what is missing is a fresh list or an operator, and a new list makes the
 * address due by itself.
 */
export function dueAfter(
  now: Date,
  {
    id,
    result,
    sinceMs,
    oracle,
  }: Pick<Screened, 'result'> & { readonly id: string; readonly sinceMs: number; readonly oracle?: OracleAnswer },
): Date {
  if (result === 'pending') {
    const againMs = Math.max(againMsFirst, Math.floor(sinceMs / 4))
    const hasBound = oracle === undefined || oracle === 'failed' || oracle === 'unknown'
    return instantOf(now.getTime() + (hasBound ? Math.min(againMsMax, againMs) : againMs))
  }
  return instantOf(now.getTime() + dayMs - (hashOf(id) % spreadMs))
}

function hashOf(text: string): number {
  let hash = 0
  for (let index = 0; index < text.length; index++) hash = (hash * 31 + text.charCodeAt(index)) % 2_147_483_647
  return hash
}

/** Whether neither source could judge the address: the list is stale, and the oracle did not answer. */
export function hasNoSource({ reason, oracle }: Screened): boolean {
  return reason === 'list-stale' && oracle !== 'clean'
}

/**
 * Whether money that the address sent is on hold: while neither source could judge it, and until the oracle was queried about it for the first
 * time. An address that the sandbox answers as pending stands for one that no source could judge.
 */
export function isOnHold(screened: Screened): boolean {
  const { result, reason } = screened
  return result === 'pending' && (hasNoSource(screened) || reason === 'oracle-unknown' || reason === 'sandbox')
}

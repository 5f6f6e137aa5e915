import type { OracleResult, Screened, ScreeningResult } from '../../../partners/screening/port.ts'
import { instantOf } from '../../../platform/clock.ts'

const dayMs = 86_400_000
/** Daily screenings are spread over these two hours, so that they are not all due at once. */
const spreadMs = 7_200_000
const retryMsFirst = 60_000
const retryMsMax = 3_600_000

/** The stored screening state of an address. */
export interface Known {
  readonly amlStatus: ScreeningResult
  /** Screenings with a lower ticket began before the stored one, and are outdated. */
  readonly amlTicket: bigint
}

/**
 * The new status after a screening, or `again` if its result must be discarded. Only a clear result of a screening that began after the
 * flag was stored removes the flag; a pending result changes no flag. A flag is stored whenever its screening began.
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
 * Returns the time of the next screening: daily, at a time that depends on the id; while the result is `pending`, after a quarter of `sinceMs` (since
 * the last result other than pending, or since the address was registered), at least a minute. An oracle that does not respond is queried again after
 * an hour at most. If it reported `clean` or there is none, there is no such bound: a fresh list or an operator is needed, and a new list makes the
 * address due by itself.
 */
export function dueAfter(
  now: Date,
  {
    id,
    result,
    sinceMs,
    oracle,
  }: Pick<Screened, 'result'> & { readonly id: string; readonly sinceMs: number; readonly oracle?: OracleResult },
): Date {
  if (result === 'pending') {
    const againMs = Math.max(retryMsFirst, Math.floor(sinceMs / 4))
    const hasBound = oracle === undefined || oracle === 'failed' || oracle === 'unknown'
    return instantOf(now.getTime() + (hasBound ? Math.min(retryMsMax, againMs) : againMs))
  }
  return instantOf(now.getTime() + dayMs - (hashOf(id) % spreadMs))
}

/** The time of the next attempt after a screening whose result could not be stored. */
export function retryAfter(now: Date): Date {
  return instantOf(now.getTime() + retryMsFirst)
}

function hashOf(text: string): number {
  let hash = 0
  for (let index = 0; index < text.length; index++) hash = (hash * 31 + text.charCodeAt(index)) % 2_147_483_647
  return hash
}

/** Whether neither source could screen the address: the list is stale, and the oracle did not respond. */
export function hasNoSource({ reason, oracle }: Screened): boolean {
  return reason === 'list-stale' && oracle !== 'clean'
}

/**
 * Whether money from the address is on hold: while neither source could screen it, and until the oracle was first queried about it.
 */
export function isOnHold(screened: Screened): boolean {
  const { result, reason, simulatesNoSource = false } = screened
  return result === 'pending' && (hasNoSource(screened) || reason === 'oracle-unknown' || simulatesNoSource)
}

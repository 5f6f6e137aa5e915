import { instantOf } from '../../platform/clock.ts'
import { ListRefused, type ReadList } from './sanctions-list.ts'

export const staleAfterMs = 7 * 86_400_000
/** OFAC changes its list many times a month: a source that has shown the same day for longer than this is a dead copy. */
const sourceAliveMs = 30 * 86_400_000
const dayMs = 86_400_000

/** Where a list came from, as far as it says how fresh the list is. */
export interface Origin {
  readonly now: Date
  /** Read from the source just now, and not from a file of unknown age. */
  readonly isLive: boolean
  /** When the source says that it last changed (HTTP `Last-Modified`). */
  readonly lastModified: Date | undefined
  /** The day that the operator vouches for, `YYYY-MM-DD`. */
  readonly vouchedDate: string | undefined
}

export interface ListDates {
  /** `YYYY-MM-DD`. */
  readonly listDate: string
  /** Until when the list is known to be what OFAC says; staleness counts from here. */
  readonly asOf: Date
}

/**
 * How fresh a list is. The official list, read from its source, is as fresh as the reading, however quiet OFAC was that week. Any other
 * copy is as fresh as the day that it bears, that its server gives, or that the operator vouches for: a mirror that nobody feeds any more must
 * not look fresh for ever. Throws `ListRefused` for a list without any day, or one from the future.
 */
export function dateList(list: Pick<ReadList, 'format' | 'listDate'>, origin: Origin): ListDates {
  const stated = list.listDate ?? origin.vouchedDate ?? origin.lastModified?.toISOString().slice(0, 10)
  if (stated === undefined)
    throw new ListRefused('undated', 'the list bears no day: add "# list-date: YYYY-MM-DD" to it, or give --as-of')
  const statedAt = dayAt(stated)
  const { now } = origin
  if (statedAt.getTime() > now.getTime() + dayMs) throw new ListRefused('future', 'the list bears a day to come')
  const isOfficial = list.format === 'sdn-advanced-xml' && origin.isLive
  const isAlive = now.getTime() - statedAt.getTime() <= sourceAliveMs
  const vouchedAt = origin.vouchedDate === undefined ? statedAt : dayAt(origin.vouchedDate)
  const asOf = isOfficial && isAlive ? now : vouchedAt
  return { listDate: stated, asOf: asOf > now ? now : asOf }
}

export function isStale(asOf: Date, now: Date): boolean {
  return now.getTime() - asOf.getTime() > staleAfterMs
}

function dayAt(day: string): Date {
  const at = instantOf(`${day}T00:00:00.000Z`)
  if (Number.isNaN(at.getTime()) || at.toISOString().slice(0, 10) !== day)
    throw new ListRefused('undated', `the list bears ${day}, which is no day`)
  return at
}

import { instantOf } from '../../platform/clock.ts'
import { ListRefused, type ReadList } from './sanctions-list.ts'

const staleAfterMs = 7 * 86_400_000
/** OFAC updates its list several times a month, so a source with an older date counts as an abandoned copy. */
const sourceAliveMs = 30 * 86_400_000
const dayMs = 86_400_000

/** The facts about the origin of a list that determine its freshness. */
export interface Origin {
  readonly now: Date
  /** Whether it was just read from the source and not from a file of unknown age. */
  readonly isLive: boolean
  /** The source's HTTP `Last-Modified`. */
  readonly lastModified: Date | undefined
  /** The date that the operator confirms, `YYYY-MM-DD`. */
  readonly vouchedDate: string | undefined
}

export interface ListDates {
  /** `YYYY-MM-DD`. */
  readonly listDate: string
  /** Time until which the list is known to match OFAC's; staleness counts from here. */
  readonly asOf: Date
}

/**
 * Determines how fresh a list is. The official list, read from its source, is as fresh as the reading. Any other copy is as fresh as its own date,
 * its server's date or the date that the operator confirms, so that an abandoned mirror becomes stale. Throws `ListRefused` for a list without a
 * date or with a future date.
 */
export function dateList(list: Pick<ReadList, 'format' | 'listDate'>, origin: Origin): ListDates {
  const stated = list.listDate ?? origin.vouchedDate ?? origin.lastModified?.toISOString().slice(0, 10)
  if (stated === undefined)
    throw new ListRefused('undated', 'the list has no date: add "# list-date: YYYY-MM-DD" to it, or give --as-of')
  const statedAt = dayAt(stated)
  const { now } = origin
  if (statedAt.getTime() > now.getTime() + dayMs) throw new ListRefused('future', 'the list has a future date')
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
    throw new ListRefused('undated', `the list has the invalid date ${day}`)
  return at
}

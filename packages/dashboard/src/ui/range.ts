/** The time ranges of a page, by their value in the URL. */
export const ranges = {
  '1h': { label: 'Last hour', ms: 3_600_000 },
  '24h': { label: 'Last 24 hours', ms: 86_400_000 },
  '7d': { label: 'Last 7 days', ms: 7 * 86_400_000 },
  '30d': { label: 'Last 30 days', ms: 30 * 86_400_000 },
} as const

export type RangeName = keyof typeof ranges

export interface RangeSearch {
  readonly range?: RangeName
}

export const rangeNames = Object.keys(ranges) as readonly RangeName[]

export function isRange(value: unknown): value is RangeName {
  return rangeNames.some((name) => name === value)
}

/** The range in an address; nothing where it names none, so that the page takes its own. */
export function readRange(search: Readonly<Record<string, unknown>>): RangeSearch {
  return isRange(search.range) ? { range: search.range } : {}
}

/** Start of the range, rounded to the minute, so that all parts of a page send the same query. */
export function rangeStart(range: RangeName, now: Date): Date {
  const minute = 60_000
  return new Date(Math.floor((now.getTime() - ranges[range].ms) / minute) * minute)
}

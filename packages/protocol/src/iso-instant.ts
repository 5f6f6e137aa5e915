const dayMs = 86_400_000

/** The years that ISO 8601 writes with four digits. */
const rangeMs = { first: daysOf(0, 1, 1) * dayMs, last: daysOf(10_000, 1, 1) * dayMs - 1 } as const

const datePattern = /^(\d{4})(?:-?(\d{2})-?(\d{2})|-?(\d{3})|-?W(\d{2})-?(\d))$/i
const timePattern = /^(\d{2})(?::?(\d{2})(?::?(\d{2}))?)?(?:[.,](\d{1,30}))?(?:(Z)|([+\- ])(\d{2})(?::?(\d{2}))?)?$/i

/**
 * Parses an ISO 8601 instant into milliseconds since 1970, rounded down. Accepts calendar, ordinal and week dates in
 * basic and extended form. Without a time it is 00:00; without a zone it is UTC. A space may replace the `T` (RFC 3339)
 * or the `+` of a zone (query strings decode `+` as a space). Returns undefined for any other text, for a day that does
 * not exist, and for years outside 0 to 9999. Source: ISO 8601-1:2019, 5.2 to 5.4.
 *
 * @example
 * parseInstant('2026-11-22') // 1795305600000
 * parseInstant('20261122T0930+02') // 1795332600000
 */
export function parseInstant(text: string): number | undefined {
  const at = text.search(/[T ]/i)
  const day = dayOf(at < 0 ? text : text.slice(0, at))
  const ms = at < 0 ? 0 : timeOf(text.slice(at + 1))
  if (day === undefined || ms === undefined) return undefined
  const instant = day * dayMs + ms
  return instant < rangeMs.first || instant > rangeMs.last ? undefined : instant
}

/** Days since 1970-01-01. */
function dayOf(text: string): number | undefined {
  const [, yearText, month, dayOfMonth, ordinal, week, weekday] = datePattern.exec(text) ?? []
  if (yearText === undefined) return undefined
  const year = Number(yearText)
  if (month !== undefined) {
    const last = Number(month) === 12 ? 31 : daysOf(year, Number(month) + 1, 1) - daysOf(year, Number(month), 1)
    const isThere = within(Number(month), 1, 12) && within(Number(dayOfMonth), 1, last)
    return isThere ? daysOf(year, Number(month), Number(dayOfMonth)) : undefined
  }
  const first = daysOf(year, 1, 1)
  if (ordinal !== undefined)
    return within(Number(ordinal), 1, daysOf(year + 1, 1, 1) - first) ? first + Number(ordinal) - 1 : undefined
  const weeks = (firstMonday(year + 1) - firstMonday(year)) / 7
  if (!within(Number(week), 1, weeks) || !within(Number(weekday), 1, 7)) return undefined
  return firstMonday(year) + (Number(week) - 1) * 7 + Number(weekday) - 1
}

/** Milliseconds since midnight in UTC; 24:00 is the next day's midnight, and a leap second the next minute. */
function timeOf(text: string): number | undefined {
  const [, hourText, minuteText, secondText, fraction, , sign, zoneHour = '0', zoneMinute = '0'] =
    timePattern.exec(text) ?? []
  if (hourText === undefined) return undefined
  const [hour, minute, second] = [Number(hourText), Number(minuteText ?? 0), Number(secondText ?? 0)]
  const unitMs = secondText !== undefined ? 1_000 : minuteText !== undefined ? 60_000 : 3_600_000
  const fractionMs =
    fraction === undefined ? 0 : Math.floor((Number(fraction.slice(0, 12).padEnd(12, '0')) * unitMs) / 1e12)
  const isMidnightAfter = hour === 24 && minute === 0 && second === 0 && fractionMs === 0
  if (!isMidnightAfter && (hour > 23 || minute > 59 || second > 60)) return undefined
  if (Number(zoneHour) > 23 || Number(zoneMinute) > 59) return undefined
  const zoneMs = (Number(zoneHour) * 60 + Number(zoneMinute)) * 60_000
  return hour * 3_600_000 + minute * 60_000 + second * 1_000 + fractionMs + (sign === '-' ? zoneMs : -zoneMs)
}

/**
 * Days from 1970-01-01 to a day of the proleptic Gregorian calendar. The formula begins a year in March, so that a leap
 * day is its last day.
 */
function daysOf(year: number, month: number, day: number): number {
  const marchYear = month <= 2 ? year - 1 : year
  const era = Math.floor(marchYear / 400)
  const yearOfEra = marchYear - era * 400
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1
  return era * 146_097 + yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear - 719_468
}

/** The Monday of a year's first ISO week, which is the one with January 4th. */
function firstMonday(year: number): number {
  const fourth = daysOf(year, 1, 4)
  return fourth - ((((fourth + 3) % 7) + 7) % 7)
}

function within(value: number, least: number, most: number): boolean {
  return value >= least && value <= most
}

/** The reason why a text is not a duration. */
export type DurationFault = 'not-a-duration' | 'too-long'

/** The longest duration, in seconds: 3650 days. Plans have lower limits of their own. */
export const durationSecondsMax = 3_650 * 86_400

const unitSeconds = { m: 60, h: 3_600, d: 86_400 } as const
const durationPattern = /^([1-9][0-9]{0,9})([mhd])$/

/**
 * Parses a duration of the API into seconds: `<n>m`, `<n>h` or `<n>d` (`24h`, `7d`), where n is a positive integer
 * without leading zeros. Anything else (a sign, a fraction, white space, two units) is `not-a-duration` and never
 * interpreted as another time. A day is 86,400 seconds.
 *
 * @example
 * parseDuration('24h') // 86400
 * parseDuration('1.5h') // 'not-a-duration'
 */
export function parseDuration(text: string): number | DurationFault {
  const [, digits, unit] = durationPattern.exec(text) ?? []
  if (digits === undefined || !isUnit(unit)) return 'not-a-duration'
  const seconds = Number(digits) * unitSeconds[unit]
  return seconds > durationSecondsMax ? 'too-long' : seconds
}

function isUnit(text: string | undefined): text is keyof typeof unitSeconds {
  return text === 'm' || text === 'h' || text === 'd'
}

/** The only code that reads the machine's time; tests pass a clock that moves only when they move it. */
export interface Clock {
  now(): Date
}

/** The machine's clock. */
export const systemClock: Clock = { now: () => new Date() }

/** Unix seconds of an instant, rounded down, as in block timestamps and EIP-3009 bounds. */
export function unixSeconds(instant: Date): number {
  return Math.floor(instant.getTime() / 1000)
}

/** The calendar month in UTC that contains an instant: `2026-12` in December 2026. */
export function utcMonthOf(instant: Date): string {
  return instant.toISOString().slice(0, 7)
}

/** The instant of a validated ISO 8601 text or a count of milliseconds. */
export function instantOf(value: string | number): Date {
  return new Date(value)
}

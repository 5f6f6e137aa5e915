/** The one place that reads the machine's time; tests hand in a clock that stands still until told. */
export interface Clock {
  now(): Date
}

/** The machine's clock. */
export const systemClock: Clock = { now: () => new Date() }

/** Unix seconds of an instant, rounded down, as block timestamps and EIP-3009 bounds are counted. */
export function unixSeconds(instant: Date): number {
  return Math.floor(instant.getTime() / 1000)
}

/** The instant that a checked ISO 8601 text or a count of milliseconds names. */
export function instantOf(value: string | number): Date {
  return new Date(value)
}

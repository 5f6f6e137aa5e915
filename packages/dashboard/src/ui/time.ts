const full = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })
const dayOfYear = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' })
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })

const utcDay = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' })

/** The day in UTC, by which plans count: `1 Nov 2026`. */
export function dayOfUtc(at: Date): string {
  return utcDay.format(at)
}

/** The name of the reader's time zone, such as `Europe/Zurich`. */
export const timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone

/** In the reader's zone: `23 Nov 2026, 16:04:12`. */
export function fullTime(at: Date): string {
  return full.format(at)
}

/** Formats a time in UTC, without milliseconds. */
export function utcTime(at: Date): string {
  return `${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

/** `just now`, `40 s ago`, `12 min ago`, then the clock today, then the date. */
export function shortTime(at: Date, now: Date): string {
  const seconds = Math.round((now.getTime() - at.getTime()) / 1_000)
  if (seconds >= 0 && seconds < 5) return 'just now'
  if (seconds >= 0 && seconds < 60) return `${seconds} s ago`
  if (seconds >= 0 && seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`
  if (at.toDateString() === now.toDateString()) return clock.format(at)
  return at.getFullYear() === now.getFullYear()
    ? `${day.format(at)}, ${clock.format(at).slice(0, 5)}`
    : dayOfYear.format(at)
}

export function clockTime(at: Date): string {
  return clock.format(at)
}

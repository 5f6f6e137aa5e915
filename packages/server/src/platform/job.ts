import type { Ctx } from './ctx.ts'

export interface Retry {
  readonly attemptsMax: number
  readonly delayMsFirst: number
  readonly delayMsMax: number
}

/**
 * Work that is due again and again. The deployment runs one of each at a time, whatever the number of processes; only where a process was paused
 * in the midst of a run and another took its place, two run at once.
 */
export interface Recurring {
  readonly name: string
  readonly everyMs: number
  /** Must be harmless twice at once; the docstring of each says why. */
  readonly run: (deps: Omit<Ctx, 'tenant'>) => Promise<void>
}

/** Exponential back-off: first, doubled each time, never over the most. */
export function retryDelayMs(retry: Retry, attempt: number): number {
  return Math.min(retry.delayMsMax, retry.delayMsFirst * 2 ** Math.min(attempt - 1, 30))
}

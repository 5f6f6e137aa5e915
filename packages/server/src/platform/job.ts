import type { Ctx } from './ctx.ts'

export interface Retry {
  readonly attemptsMax: number
  readonly delayMsFirst: number
  readonly delayMsMax: number
}

/**
 * Recurring work. The deployment runs one of each at a time, whatever the number of processes; two run concurrently only if a process was
 * paused during a run and another took over.
 */
export interface Recurring {
  readonly name: string
  readonly everyMs: number
  /** Must be safe to run twice concurrently; the docstring of each says why. */
  readonly run: (deps: Omit<Ctx, 'tenant'>) => Promise<void>
}

/** Exponential back-off: the first delay, doubled each time, never over the maximum. */
export function retryDelayMs(retry: Retry, attempt: number): number {
  return Math.min(retry.delayMsMax, retry.delayMsFirst * 2 ** Math.min(attempt - 1, 30))
}

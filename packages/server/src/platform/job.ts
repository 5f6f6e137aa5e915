import type { z } from 'zod'
import type { Ctx } from './ctx.ts'

export interface Retry {
  readonly attemptsMax: number
  readonly delayMsFirst: number
  readonly delayMsMax: number
}

export interface JobSpec<P extends z.ZodType> {
  readonly name: string
  readonly payload: P
  readonly retry: Retry
  readonly run: (ctx: Omit<Ctx, 'tenant'>, payload: z.output<P>) => Promise<void>
}

/** One piece of background work as data. Its docstring says why running it again is harmless. */
export interface Job {
  readonly name: string
  readonly payload: z.ZodType
  readonly retry: Retry
  readonly run: (ctx: Omit<Ctx, 'tenant'>, payload: never) => Promise<void>
}

/** Declares a job; the type of its payload follows from the schema. */
export function job<P extends z.ZodType>(spec: JobSpec<P>): Job {
  return spec as unknown as Job
}

/** Work that is due again and again: the deployment runs one of each at a time, whatever the number of processes. */
export interface Recurring {
  readonly name: string
  readonly everyMs: number
  /** Running it twice at once is harmless; the docstring of each says why. */
  readonly run: (deps: Omit<Ctx, 'tenant'>) => Promise<void>
}

/** Exponential back-off: first, doubled each time, never over the most. */
export function retryDelayMs(retry: Retry, attempt: number): number {
  return Math.min(retry.delayMsMax, retry.delayMsFirst * 2 ** Math.min(attempt - 1, 30))
}

import type { Network } from '@purser/protocol'
import type { Background, Deps } from './ctx.ts'
import type { Sql } from './db/db.ts'

/** Repeats a piece of work while there is more of it, at most `timesMax` times, and begins no further piece once the process stops. */
export async function repeatWhile(
  { stopping }: Pick<Background, 'stopping'>,
  piece: () => Promise<boolean>,
  timesMax = Number.POSITIVE_INFINITY,
): Promise<void> {
  for (let times = 0; times < timesMax && stopping?.aborted !== true; times += 1) {
    if (!(await piece())) return
  }
}

export interface Retry {
  readonly attemptsMax: number
  readonly delayMsFirst: number
  readonly delayMsMax: number
}

/** Registers work that outlives its run: the next run starts without waiting for it. The work must not reject. */
export interface Detach {
  (work: Promise<void>): void
  /** Aborted when the process stops: it waits for work in progress, and begins no further piece. */
  readonly stopping?: AbortSignal
}

/**
 * A recurring task. The deployment runs one of each at a time, whatever the number of processes; two run concurrently only if a process was
 * paused during a run and another took over.
 */
export interface RecurringTask<D extends Deps = Deps> {
  readonly name: string
  readonly everyMs: number
  /**
   * A condition that is true while there is work. If it is given, the task runs every `everyMs` only while it is true, and otherwise rarely (see
   * `work/due-work.ts`).
   */
  readonly isDue?: (deps: D) => Sql
  /** Must be safe to run twice concurrently; the docstring of each says why. Without `detach` it waits for all of its work. */
  readonly run: (ctx: D & Background, detach?: Detach) => Promise<void>
}

/** A recurring task that each network has for itself. No network waits for another one's work, such as for a node that does not respond. */
export interface RecurringTaskByNetwork<D extends Deps = Deps> {
  readonly name: string
  readonly everyMs: number
  readonly networks: (deps: D) => readonly Network[]
  /** A condition under which any of these networks has work; see `RecurringTask`. */
  readonly isDue: (networks: readonly string[], deps: D) => Sql
  /** Must be safe to run twice concurrently, as `RecurringTask`. It does not run for a network in which the run before continues. */
  readonly runOn: (ctx: D & Background, network: Network) => Promise<void>
}

/** A recurring task with the dependencies of its feature. */
export interface BoundTask {
  readonly name: string
  readonly everyMs: number
  readonly isDue?: () => Sql
  readonly run: (detach?: Detach) => Promise<void>
}

/** Exponential back-off: the first delay, doubled each time, never over the maximum. */
export function retryDelayMs(retry: Retry, attempt: number): number {
  return Math.min(retry.delayMsMax, retry.delayMsFirst * 2 ** Math.min(attempt - 1, 30))
}

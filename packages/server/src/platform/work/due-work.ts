import { z } from 'zod'
import { listed, type Queryable, type Sql, sql } from '../db/db.ts'
import type { Log } from '../log.ts'
import { type LoopOptions, type RunningLoop, startLoop } from './loop.ts'

/** Intervals of a probe: for a while after it found work, and at rest. */
export interface ProbeIntervals {
  readonly busyMs: number
  readonly idleMs: number
}

const intervalsDefault: ProbeIntervals = { busyMs: 50, idleMs: 80 }
/** Milliseconds for which a probe that found work stays busy. */
const busyForMs = 5_000
/** Pause after a failure; every watcher is woken meanwhile, so that one wrong condition delays no other work. */
const failureMs = 500
/** Interval of a loop whose condition is never true. */
const unpromptedMs = 60_000

interface Watcher {
  /** A condition under which there is work. One index look-up must answer it, whatever the size of the table. */
  readonly isDue: () => Sql
  /** Called while the condition is true, at most once in `everyMs`. Must not throw. */
  readonly wake: () => void
  readonly everyMs: number
}

/** Finds work that this and other processes committed, or that has become due: one statement asks for all watchers of the process. */
export interface Probe {
  /** Watches from now on. The returned function ends it, and resolves when nothing is read any more. */
  watch(watcher: Watcher): () => Promise<void>
}

const Found = z.object({ due: z.array(z.boolean()) })

/** Creates the probe of a process. It reads nothing while there is no watcher. */
export function createProbe(
  { db, log }: { readonly db: Queryable; readonly log: Pick<Log, 'warn'> },
  intervals: ProbeIntervals = intervalsDefault,
): Probe {
  /** With the time of the last wake-up, by a monotonic clock. */
  const watchers = new Map<Watcher, number>()
  let foundAtMs = Number.NEGATIVE_INFINITY
  let loop: RunningLoop | undefined

  const wake = (watcher: Watcher): void => {
    const wokenAtMs = watchers.get(watcher)
    const nowMs = performance.now()
    if (wokenAtMs === undefined || nowMs - wokenAtMs < watcher.everyMs) return
    watchers.set(watcher, nowMs)
    watcher.wake()
  }
  const run = async (): Promise<number> => {
    const beganMs = performance.now()
    const read = [...watchers.keys()]
    const { due } = await findDue(db, read).catch((error: unknown) => {
      read.forEach(wake)
      throw error
    })
    const found = read.filter((_, place) => due[place] === true)
    found.forEach(wake)
    if (found.length > 0) foundAtMs = beganMs
    const intervalMs = beganMs - foundAtMs < busyForMs ? intervals.busyMs : intervals.idleMs
    const tookMs = performance.now() - beganMs
    // A slow database is not read more than half of the time.
    return Math.max(intervalMs - tookMs, tookMs)
  }
  return {
    watch(watcher) {
      watchers.set(watcher, Number.NEGATIVE_INFINITY)
      // Its runs are no traces: they would hide those of the loops.
      loop ??= startLoop({ name: 'probe', everyMs: intervals.idleMs, failureMs, log, isTraced: false, run })
      return async () => {
        watchers.delete(watcher)
        if (watchers.size > 0) return
        const last = loop
        loop = undefined
        await last?.stop()
      }
    },
  }
}

async function findDue(db: Queryable, watchers: readonly Watcher[]): Promise<z.output<typeof Found>> {
  return db.one(Found, sql`select array[${listed(watchers.map(({ isDue }) => isDue()))}] as due`)
}

export interface DueLoopOptions extends LoopOptions {
  readonly probe: Probe
  readonly isDue: () => Sql
  /** Called before each run for which the condition is the reason. */
  readonly onDue?: () => void
}

/**
 * Starts a loop that runs while a condition is true, at most every `everyMs`. Also runs at the start, when it is woken, and every minute,
 * so that a condition that overlooks something delays it and loses nothing.
 */
export function startDueLoop({ probe, isDue, onDue, everyMs, ...options }: DueLoopOptions): RunningLoop {
  const loop = startLoop({ failureMs: everyMs, ...options, everyMs: unpromptedMs })
  const wake = (): void => {
    onDue?.()
    loop.wake()
  }
  const ignore = probe.watch({ isDue, everyMs, wake })
  return {
    wake: loop.wake,
    async stop() {
      await Promise.all([ignore(), loop.stop()])
    },
  }
}

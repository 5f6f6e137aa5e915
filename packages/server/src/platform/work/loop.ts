import type { Log } from '../log.ts'
import { inLoopSpan } from '../tracing/spans.ts'

/** A loop that was started. */
export interface RunningLoop {
  /** Runs it immediately; if it is running, once more when that run has ended. */
  wake(): void
  /** Lets the current run end. Nothing runs afterwards. */
  stop(): Promise<void>
}

export interface LoopOptions {
  /** Name of the loop in the log. */
  readonly name: string
  readonly everyMs: number
  /** Delay after a failure, however often it is woken; default `everyMs`. */
  readonly failureMs?: number
  readonly log: Pick<Log, 'warn'> | undefined
  /** Whether its runs are traced; default true. */
  readonly isTraced?: boolean
  /** Runs once. The signal is aborted when the loop stops. Returns the milliseconds until the next run if that differs from `everyMs`. */
  readonly run: (stopped: AbortSignal) => Promise<number | undefined>
}

/** Runs work repeatedly, one run at a time, until it is stopped. A failed run ends nothing: the next one runs when it is due. */
export function startLoop({ name, everyMs, failureMs = everyMs, log, isTraced = true, run }: LoopOptions): RunningLoop {
  const stopping = new AbortController()
  let woken = Promise.withResolvers<void>()
  const runs = (async () => {
    while (!stopping.signal.aborted) {
      woken = Promise.withResolvers()
      try {
        const nextMs = await (isTraced ? inLoopSpan(name, () => run(stopping.signal)) : run(stopping.signal))
        await pauseOrWake(nextMs ?? everyMs, woken.promise, stopping.signal)
      } catch (error) {
        log?.warn({ err: error, loop: name }, 'background work failed; retrying')
        await pause(failureMs, stopping.signal)
      }
    }
  })()
  return {
    wake: () => woken.resolve(),
    async stop() {
      stopping.abort()
      await runs
    },
  }
}

/** Longest delay of a timer. */
const pauseMsMax = 2 ** 31 - 1

async function pauseOrWake(ms: number, woken: Promise<void>, stopped: AbortSignal): Promise<void> {
  if (ms > 0) await pause(Math.min(ms, pauseMsMax), stopped, woken)
}

/** Waits this long, or until the signal is aborted or the promise resolves. */
export function pause(ms: number, stopped: AbortSignal, woken?: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    if (stopped.aborted) return resolve()
    const done = (): void => {
      clearTimeout(timer)
      stopped.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    stopped.addEventListener('abort', done, { once: true })
    woken?.then(done)
  })
}

import type { Log } from '../log.ts'

export interface Loop {
  /** Runs it at once; where it is running, once more when that run has ended. */
  wake(): void
  /** Lets the run under way end. Nothing runs afterwards. */
  stop(): Promise<void>
}

export interface LoopOptions {
  /** Under this name failures are logged. */
  readonly name: string
  readonly everyMs: number
  /** After a failure, however often it is woken; `everyMs` where it is left out. */
  readonly failureMs?: number
  readonly log: Pick<Log, 'warn'> | undefined
  /** Runs once. The signal is aborted when the loop stops. Returns after how many milliseconds it runs again, where that is not `everyMs`. */
  readonly run: (stopped: AbortSignal) => Promise<number | undefined>
}

/** Runs work again and again, one run at a time, from now until it is stopped. A run that fails ends nothing: the next comes when it is due. */
export function startLoop({ name, everyMs, failureMs = everyMs, log, run }: LoopOptions): Loop {
  const stopping = new AbortController()
  let woken = Promise.withResolvers<void>()
  const runs = (async () => {
    while (!stopping.signal.aborted) {
      woken = Promise.withResolvers()
      try {
        const nextMs = await run(stopping.signal)
        await pauseOrWake(nextMs ?? everyMs, woken.promise, stopping.signal)
      } catch (error) {
        log?.warn({ err: error, loop: name }, 'background work failed; it is tried again')
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

/** Longest that a timer can wait. */
const pauseMsMax = 2 ** 31 - 1

async function pauseOrWake(ms: number, woken: Promise<void>, stopped: AbortSignal): Promise<void> {
  if (stopped.aborted || ms <= 0) return
  const waiting = new AbortController()
  await Promise.race([woken, pause(Math.min(ms, pauseMsMax), AbortSignal.any([waiting.signal, stopped]))])
  waiting.abort()
}

/** Waits, but not beyond the signal. */
export function pause(ms: number, stopped: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (stopped.aborted) return resolve()
    const done = (): void => {
      clearTimeout(timer)
      stopped.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    stopped.addEventListener('abort', done, { once: true })
  })
}

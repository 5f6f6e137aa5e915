import { pause } from '../../../platform/work/loop.ts'

export interface Loop {
  /** Has the step run now, and once more where it is running. Never throws. */
  wake(): void
  /** Resolves when the step that is under way has ended; none follows. */
  stop(): Promise<void>
}

/** After a step that failed, the next one waits this long, however often it is woken. */
const afterFailureMs = 1_000

/** Runs a step again and again, each time after the pause in milliseconds that the one before it answered, or when it is woken. */
export function startLoop(step: () => Promise<number>, onFailure: (error: unknown) => void): Loop {
  const stopping = new AbortController()
  const { signal } = stopping
  let woken = Promise.withResolvers<void>()
  const rest = async (ms: number): Promise<void> => {
    if (ms <= 0) return
    const rested = new AbortController()
    await Promise.race([woken.promise, pause(ms, AbortSignal.any([rested.signal, signal]))])
    rested.abort()
  }
  const turn = async (): Promise<void> => {
    woken = Promise.withResolvers()
    try {
      await rest(await step())
    } catch (error) {
      onFailure(error)
      await pause(afterFailureMs, signal)
    }
  }
  const running = (async () => {
    while (!signal.aborted) await turn()
  })()
  return {
    wake: () => woken.resolve(),
    async stop() {
      stopping.abort()
      await running
    },
  }
}

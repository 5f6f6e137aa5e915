/** Stops what a benchmark started, also after an error, in reverse order. */
export interface Closing {
  /** Returns a function that stops it now. It is stopped once, and every caller waits for that. */
  add(stop: () => Promise<unknown>): () => Promise<void>
  all(): Promise<void>
}

export function createClosing(): Closing {
  const stops: (() => Promise<void>)[] = []
  let ending: Promise<void> | undefined
  const endAll = async () => {
    for (const stop of stops.toReversed()) {
      await stop().catch((error: unknown) => console.error('could not be stopped:', error))
    }
  }
  return {
    add(stop) {
      let stopping: Promise<void> | undefined
      const once = () => {
        stopping ??= stop().then(() => {})
        return stopping
      }
      stops.push(once)
      return once
    },
    all() {
      ending ??= endAll()
      return ending
    },
  }
}

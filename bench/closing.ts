/** What must be stopped when a benchmark ends, also when it ends by an error: the last started first. */
export interface Closing {
  /** Answers the function that stops it now; it is stopped once, and whoever asks waits until it is. */
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

/** What must be stopped when a benchmark ends, also when it ends by an error: the last started first. */
export interface Closing {
  /** Answers the function that stops it now; it is stopped once, whoever asks. */
  add(stop: () => Promise<unknown>): () => Promise<void>
  all(): Promise<void>
}

export function createClosing(): Closing {
  const open: (() => Promise<void>)[] = []
  return {
    add(stop) {
      const once = async () => {
        const index = open.indexOf(once)
        if (index < 0) return
        open.splice(index, 1)
        await stop()
      }
      open.push(once)
      return once
    },
    async all() {
      for (const stop of [...open].reverse()) {
        await stop().catch((error: unknown) => console.error('could not be stopped:', error))
      }
    },
  }
}

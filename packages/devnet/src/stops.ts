export type Stops = { add(stop: () => Promise<unknown>): void; run(): Promise<void> }

/** Runs every stop once, the latest first, even when an earlier one failed. Then throws the first failure. */
export function createStops(): Stops {
  const list: (() => Promise<unknown>)[] = []
  let running: Promise<void> | undefined
  const runAll = async () => {
    const failures: unknown[] = []
    for (let stop = list.pop(); stop !== undefined; stop = list.pop()) {
      await stop().catch((error: unknown) => failures.push(error))
    }
    if (failures.length > 0) throw failures[0]
  }
  return {
    add: (stop) => list.push(stop),
    run() {
      running ??= runAll()
      return running
    },
  }
}

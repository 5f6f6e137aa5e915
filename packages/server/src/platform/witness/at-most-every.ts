/**
 * Returns a function that runs the work at most once in `everyMs`. The first call runs it at once. Calls in between share the next run, which begins
 * after all of them; each of them gets its result or its error.
 */
export function atMostEvery(work: () => Promise<void>, everyMs: number): () => Promise<void> {
  let next: Promise<void> | undefined
  let beganAt = Number.NEGATIVE_INFINITY
  const begin = (): Promise<void> => {
    next = undefined
    beganAt = performance.now()
    return work()
  }
  return () => {
    next ??= new Promise<void>((resolve) =>
      setTimeout(resolve, Math.max(0, beganAt + everyMs - performance.now())),
    ).then(begin)
    return next
  }
}

/** Runs the work for each item, at most `atOnce` in parallel. The results are in no particular order. */
export async function inParallel<I, O>(
  items: readonly I[],
  atOnce: number,
  work: (item: I) => Promise<O>,
): Promise<O[]> {
  const waiting = [...items].reverse()
  const done: O[] = []
  const workers = Array.from({ length: Math.min(atOnce, waiting.length) }, async () => {
    for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) done.push(await work(item))
  })
  await Promise.all(workers)
  return done
}

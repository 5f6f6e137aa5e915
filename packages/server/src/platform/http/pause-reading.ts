/** Tiny chunks of streamed bodies that a process takes in a millisecond: one costs about three microseconds, so they take three hundredths of a processor. */
const chunksPerMs = 10
/** An owner whose chunks would wait for longer than this sends too many. */
const waitMsMax = 30_000

/**
 * Returns how long a connection pauses for the tiny chunks that it received of an owner, in milliseconds; undefined if the owner sends too many. While no
 * caller was admitted there is no owner.
 */
export type PauseFor = (owner: string | undefined, chunks: number) => number | undefined

/**
 * Divides the tiny chunks that a process takes between the owners that send them. The connections of one owner pause in turn, so that
 * many of them take no more than one. Chunks without an owner pause as those of a single owner and count for nobody: callers without a key have any number of
 * addresses, and their requests are refused. `now` returns milliseconds of a monotonic clock.
 */
export function createReadingPauses(now: () => number = () => performance.now()): PauseFor {
  /** The time by which the chunks of each owner so far have been paid for. */
  const ends = new Map<string, number>()
  return (owner, chunks) => {
    if (owner === undefined) return chunks / chunksPerMs
    const at = now()
    for (const [name, end] of ends) if (end <= at) ends.delete(name)
    const begin = ends.get(owner) ?? at
    if (begin - at > waitMsMax) return undefined
    ends.delete(owner)
    const end = begin + (chunks * (ends.size + 1)) / chunksPerMs
    ends.set(owner, end)
    return end - at
  }
}

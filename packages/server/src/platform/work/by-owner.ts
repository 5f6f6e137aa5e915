/** Most items of a source in progress, and most of one owner. */
interface Limits {
  readonly slots: number
  readonly atOnce: number
}

const usualLimits: Limits = { slots: 32, atOnce: 4 }

/** Most items that wait for a slot: of one owner, and of a source. An owner that has no item may always add one. */
const waitingPerOwnerMax = 500
const waitingMax = 5_000

interface Item {
  readonly id: unknown
  /** The account on the free plan, otherwise the organisation: the organisations of an account have the slots of one. */
  readonly shareOwner: string
}

/**
 * Runs slow work on items of one source, such as a network or a partner. At most `slots` items of a source run at once, and at most `atOnce` of
 * one share owner, over all calls. A free slot goes to the owner with the fewest running items; of several, to the one that has waited
 * longest. So an owner waits for the end of one item, whatever backlog others have. An owner's own items run in the order in which they were passed.
 *
 * Items that already run, and items beyond the limits of the queue, are skipped: the caller passes them again later. An item that is already
 * waiting runs once, as it was passed last. Resolves when the items that were not skipped are done. After `until` is aborted, waiting items of
 * the source are skipped. The work must not reject.
 */
export type ByOwner = <I extends Item>(
  source: string,
  items: readonly I[],
  work: (item: I) => Promise<void>,
  until?: AbortSignal,
) => Promise<void>

interface Waiting {
  work: () => Promise<void>
  readonly done: PromiseWithResolvers<void>
}

interface Owner {
  readonly running: Set<unknown>
  readonly waiting: Map<unknown, Waiting>
}

interface Source {
  running: number
  waiting: number
  /** Those with items, in the order in which they got their last slot. */
  readonly owners: Map<string, Owner>
}

/** Creates the limits of one kind of work. */
export function createByOwner(limits = usualLimits): ByOwner {
  const sources = new Map<string, Source>()
  return async (name, items, work, until) => {
    if (until?.aborted) return
    const source = sources.get(name) ?? { running: 0, waiting: 0, owners: new Map() }
    sources.set(name, source)
    const added = items.flatMap((item) => add(source, item, () => work(item)) ?? [])
    begin(source, limits)
    const stop = () => skip(source)
    until?.addEventListener('abort', stop, { once: true })
    await Promise.all(added).finally(() => until?.removeEventListener('abort', stop))
  }
}

/** Leaves out all items that wait. */
function skip(source: Source): void {
  for (const { waiting } of source.owners.values()) {
    for (const { done } of waiting.values()) done.resolve()
    source.waiting -= waiting.size
    waiting.clear()
  }
}

/** Lets an item wait for a slot. Returns when it is done; undefined if it is left out. */
function add(source: Source, { id, shareOwner }: Item, work: () => Promise<void>): Promise<void> | undefined {
  const own = source.owners.get(shareOwner) ?? { running: new Set(), waiting: new Map() }
  if (own.running.has(id)) return undefined
  const known = own.waiting.get(id)
  if (known !== undefined) {
    known.work = work
    return known.done.promise
  }
  const isFirst = own.running.size + own.waiting.size === 0
  if (own.waiting.size >= waitingPerOwnerMax || (source.waiting >= waitingMax && !isFirst)) return undefined
  const done = Promise.withResolvers<void>()
  own.waiting.set(id, { work, done })
  source.waiting += 1
  source.owners.set(shareOwner, own)
  return done.promise
}

/** Fills the free slots. */
function begin(source: Source, limits: Limits): void {
  while (source.running < limits.slots) {
    const next = nextOf(source, limits)
    if (next === undefined) return
    void beginOne(source, next).then(() => begin(source, limits))
  }
}

/** The owner that gets the next slot. */
function nextOf({ owners }: Source, { atOnce }: Limits): string | undefined {
  let [next, fewest]: [string | undefined, number] = [undefined, atOnce]
  for (const [shareOwner, { running, waiting }] of owners) {
    if (waiting.size === 0 || running.size >= fewest) continue
    next = shareOwner
    fewest = running.size
    if (fewest === 0) return next
  }
  return next
}

/** Begins the owner's item that has waited longest. Resolves when it is done and its slot is free. */
async function beginOne(source: Source, shareOwner: string): Promise<void> {
  const own = source.owners.get(shareOwner)
  const [first] = own?.waiting ?? []
  if (own === undefined || first === undefined) throw new Error('an owner without waiting items got a slot')
  const [id, { work, done }] = first
  own.waiting.delete(id)
  source.waiting -= 1
  own.running.add(id)
  source.running += 1
  source.owners.delete(shareOwner)
  source.owners.set(shareOwner, own)
  await work().then(done.resolve, done.reject)
  own.running.delete(id)
  source.running -= 1
  if (own.running.size + own.waiting.size === 0) source.owners.delete(shareOwner)
}

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

/** The items of an owner: the number in progress, and the ids of those that wait, the one that has waited longest first. */
interface Owner {
  running: number
  readonly waiting: Set<unknown>
}

/** An item keeps the owner with which it was added: its organisation may change the plan meanwhile, and thus its owner. */
interface Source {
  readonly running: Set<unknown>
  readonly waiting: Map<unknown, Waiting>
  /** Those with items, in the order in which they got their last slot. */
  readonly owners: Map<string, Owner>
}

/** Creates the limits of one kind of work. */
export function createByOwner(limits = usualLimits): ByOwner {
  const sources = new Map<string, Source>()
  return async (name, items, work, until) => {
    if (until?.aborted) return
    const source = sources.get(name) ?? { running: new Set(), waiting: new Map(), owners: new Map() }
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
  for (const { done } of source.waiting.values()) done.resolve()
  source.waiting.clear()
  for (const { waiting } of source.owners.values()) waiting.clear()
}

/** Lets an item wait for a slot. Returns when it is done; undefined if it is left out. */
function add(source: Source, { id, shareOwner }: Item, work: () => Promise<void>): Promise<void> | undefined {
  if (source.running.has(id)) return undefined
  const known = source.waiting.get(id)
  if (known !== undefined) {
    known.work = work
    return known.done.promise
  }
  const own = source.owners.get(shareOwner) ?? { running: 0, waiting: new Set() }
  const isFirst = own.running + own.waiting.size === 0
  if (own.waiting.size >= waitingPerOwnerMax || (source.waiting.size >= waitingMax && !isFirst)) return undefined
  const done = Promise.withResolvers<void>()
  own.waiting.add(id)
  source.waiting.set(id, { work, done })
  source.owners.set(shareOwner, own)
  return done.promise
}

/** Fills the free slots. */
function begin(source: Source, limits: Limits): void {
  while (source.running.size < limits.slots) {
    const next = nextOf(source, limits)
    if (next === undefined) return
    void beginOne(source, next).then(() => begin(source, limits))
  }
}

/** The owner that gets the next slot. */
function nextOf({ owners }: Source, { atOnce }: Limits): string | undefined {
  let [next, fewest]: [string | undefined, number] = [undefined, atOnce]
  for (const [shareOwner, { running, waiting }] of owners) {
    if (waiting.size === 0 || running >= fewest) continue
    next = shareOwner
    fewest = running
    if (fewest === 0) return next
  }
  return next
}

/** Begins the owner's item that has waited longest. Resolves when it is done and its slot is free. */
async function beginOne(source: Source, shareOwner: string): Promise<void> {
  const own = source.owners.get(shareOwner)
  const [id] = own?.waiting ?? []
  const first = source.waiting.get(id)
  if (own === undefined || first === undefined) throw new Error('an owner without waiting items got a slot')
  const { work, done } = first
  own.waiting.delete(id)
  source.waiting.delete(id)
  own.running += 1
  source.running.add(id)
  source.owners.delete(shareOwner)
  source.owners.set(shareOwner, own)
  await work().then(done.resolve, done.reject)
  own.running -= 1
  source.running.delete(id)
  if (own.running + own.waiting.size === 0) source.owners.delete(shareOwner)
}

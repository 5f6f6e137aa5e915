/** Most organizations, and most items of each, at the same time. */
const organisationsMax = 8
const atOnce = 4

interface Busy {
  workers: number
  readonly ids: Set<unknown>
}

/** What goes on for each organization, by the source that the work reads and the kind of work. */
const busyOf = new WeakMap<object, Map<string, Map<string, Busy>>>()

interface Kind {
  readonly name: string
  /** The source that the work reads. Each source has its own limits. */
  readonly source: object
}

/**
 * Runs slow work for each item, at most four at a time for each of at most eight organizations, also over several calls: no organization waits for
 * another's. Leaves out items that are worked on already, and those of organizations without a free place: the caller offers them again later.
 * Resolves when what it started has ended. The work must not reject.
 */
export async function byOrganisation<I extends { readonly id: unknown; readonly organisationId: string }>(
  { name, source }: Kind,
  items: readonly I[],
  work: (item: I) => Promise<void>,
): Promise<void> {
  const kinds = busyOf.get(source) ?? new Map<string, Map<string, Busy>>()
  busyOf.set(source, kinds)
  const organisations = kinds.get(name) ?? new Map<string, Busy>()
  kinds.set(name, organisations)
  const groups = Map.groupBy(items, ({ organisationId }) => organisationId)
  const workers = [...groups].flatMap(([organisationId, group]) => {
    const busy = organisations.get(organisationId) ?? { workers: 0, ids: new Set() }
    const waiting = group.filter(({ id }) => !busy.ids.has(id)).reverse()
    if (!organisations.has(organisationId) && organisations.size >= organisationsMax) return []
    organisations.set(organisationId, busy)
    const free = Math.min(atOnce - busy.workers, waiting.length)
    return Array.from({ length: free }, async () => {
      busy.workers += 1
      for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) {
        busy.ids.add(item.id)
        await work(item)
        busy.ids.delete(item.id)
      }
      busy.workers -= 1
      if (busy.workers === 0) organisations.delete(organisationId)
    })
  })
  await Promise.all(workers)
}

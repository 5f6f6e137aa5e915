/** Most organizations of a source, and most items of each, at the same time. */
interface Limits {
  readonly organisationsMax: number
  readonly atOnce: number
}

const usualLimits: Limits = { organisationsMax: 8, atOnce: 4 }

interface Busy {
  workers: number
  readonly ids: Set<unknown>
}

interface Item {
  readonly id: unknown
  readonly organisationId: string
}

/**
 * Runs slow work for items that read one source, such as a network. An organization has at most `atOnce` items in progress per source, and a source
 * at most `organisationsMax` organizations, over all calls together: no organization waits for another's work. Skips items that are already in progress and
 * items of organizations beyond these limits; the caller offers them again later. Resolves when the work that this call started has ended.
 * The work must not reject.
 */
export type ByOrganisation = <I extends Item>(
  source: string,
  items: readonly I[],
  work: (item: I) => Promise<void>,
) => Promise<void>

/** Creates the limits of one kind of work. */
export function createByOrganisation(limits = usualLimits): ByOrganisation {
  const busyBySource = new Map<string, Map<string, Busy>>()
  return (source, items, work) => {
    const organisations = busyBySource.get(source) ?? new Map<string, Busy>()
    busyBySource.set(source, organisations)
    return workOn(organisations, limits, { items, work })
  }
}

async function workOn<I extends Item>(
  organisations: Map<string, Busy>,
  { organisationsMax, atOnce }: Limits,
  { items, work }: { readonly items: readonly I[]; readonly work: (item: I) => Promise<void> },
): Promise<void> {
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

import type { OrganisationId } from '../../../platform/ids.ts'
import { mayTake } from '../../../platform/share.ts'
import type { OwnedQueue } from './queue-store.ts'

/** The part of the places that only organisations without one take: an eighth. */
const firstPart = 8

/** How many places may be filled without regard to the organisations: half of them. */
export function openPlaces(taken: number, max: number): number {
  return Math.max(0, Math.floor(max / 2) - taken)
}

/**
 * Chooses those of the waiting queues, in their order, whose organisations may have one more place: an organisation has at most half of those that the
 * others leave. Also returns the organisations that may not, although they wait.
 */
export function chooseByShares(
  waiting: readonly OwnedQueue[],
  { held, max }: { readonly held: readonly Pick<OwnedQueue, 'organisationId'>[]; readonly max: number },
): { readonly chosen: readonly OwnedQueue[]; readonly refused: ReadonlySet<OrganisationId> } {
  const places = new Map<OrganisationId, number>()
  for (const { organisationId } of held) places.set(organisationId, (places.get(organisationId) ?? 0) + 1)
  const shared = max - Math.floor(max / firstPart)
  const chosen: OwnedQueue[] = []
  const refused = new Set<OrganisationId>()
  for (const queue of waiting) {
    const own = places.get(queue.organisationId) ?? 0
    const taken = held.length + chosen.length
    if (mayTake({ own, taken, max: own === 0 ? max : shared })) {
      places.set(queue.organisationId, own + 1)
      chosen.push(queue)
    } else refused.add(queue.organisationId)
  }
  return { chosen, refused }
}

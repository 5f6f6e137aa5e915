import type { OrganisationId } from '../../../platform/ids.ts'
import { mayTakeShared } from '../../../platform/share.ts'
import type { OwnedQueue } from './queue-store.ts'

/** Returns how many slots may be filled without regard to the organisations: half of them. */
export function openSlots(taken: number, max: number): number {
  return Math.max(0, Math.floor(max / 2) - taken)
}

/**
 * Chooses those of the waiting queues, in their order, whose organisations may have one more slot: an organisation has at most half of those that the
 * others leave. Also returns how many queues of each organisation were not chosen.
 */
export function chooseByShares(
  waiting: readonly OwnedQueue[],
  { leased, max }: { readonly leased: readonly Pick<OwnedQueue, 'organisationId'>[]; readonly max: number },
): { readonly chosen: readonly OwnedQueue[]; readonly refused: ReadonlyMap<OrganisationId, number> } {
  const slots = new Map<OrganisationId, number>()
  for (const { organisationId } of leased) slots.set(organisationId, (slots.get(organisationId) ?? 0) + 1)
  const chosen: OwnedQueue[] = []
  const refused = new Map<OrganisationId, number>()
  for (const queue of waiting) {
    const own = slots.get(queue.organisationId) ?? 0
    const taken = leased.length + chosen.length
    if (mayTakeShared({ own, taken, max })) {
      slots.set(queue.organisationId, own + 1)
      chosen.push(queue)
    } else refused.set(queue.organisationId, (refused.get(queue.organisationId) ?? 0) + 1)
  }
  return { chosen, refused }
}

import type { OrganisationId } from '../../../platform/ids.ts'
import type { EndpointQueue } from './endpoint.ts'

/** By organisation, the waiting queues for which no endpoint leaves yet. */
export type WaitingQueues = Map<OrganisationId, number>

type Endpoint = Pick<EndpointQueue, 'organisationId' | 'leasedSince' | 'isLeaving' | 'leave'>

/** Returns the waiting queues without as many as endpoints of their organisation are leaving. */
export function withoutLeaving(
  refused: ReadonlyMap<OrganisationId, number>,
  leased: Iterable<Pick<Endpoint, 'organisationId' | 'isLeaving'>>,
): WaitingQueues {
  const waiting = new Map(refused)
  for (const { organisationId, isLeaving } of leased) if (isLeaving) countDown(waiting, organisationId)
  return waiting
}

/**
 * Ends the turns of endpoints that were leased before the given time, those first that were leased first: of each organisation as many as queues of it wait,
 * and all of them where no slot is free. Each turn that ends counts `waiting` down, so that a queue ends one turn, however often this runs until it is leased.
 */
export function endTurns(
  leased: Iterable<Endpoint>,
  { waiting, before, isFull }: { readonly waiting: WaitingQueues; readonly before: number; readonly isFull: boolean },
): void {
  if (!isFull && waiting.size === 0) return
  for (const endpoint of leased) {
    if (endpoint.isLeaving || endpoint.leasedSince >= before) continue
    if (!countDown(waiting, endpoint.organisationId) && !isFull) continue
    endpoint.leave()
  }
}

/** Returns whether a queue of the organisation waited. */
function countDown(waiting: WaitingQueues, organisationId: OrganisationId): boolean {
  const count = waiting.get(organisationId)
  if (count === undefined) return false
  if (count > 1) waiting.set(organisationId, count - 1)
  else waiting.delete(organisationId)
  return true
}

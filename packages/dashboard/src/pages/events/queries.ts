import type { Purser } from '@purser/sdk'
import { queryOptions } from '@tanstack/react-query'

export const eventsKey = ['events'] as const

export function eventQuery(purser: Purser, eventId: string) {
  return queryOptions({
    queryKey: [...eventsKey, 'one', eventId],
    queryFn: ({ signal }) => purser.events.get(eventId, { signal }),
    // An event never changes.
    staleTime: Number.POSITIVE_INFINITY,
  })
}

/** Every type of event, with a sample payload each. */
export function eventTypesQuery(purser: Purser) {
  return queryOptions({
    queryKey: [...eventsKey, 'types'],
    queryFn: async ({ signal }) => (await purser.events.types({ signal })).types,
    staleTime: Number.POSITIVE_INFINITY,
  })
}

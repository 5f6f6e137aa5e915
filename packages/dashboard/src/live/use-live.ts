import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef, useSyncExternalStore } from 'react'
import { useWorkspace } from '../api/context.ts'
import type { LiveEvent, LiveStatus } from './live-events.ts'
import { useThrottled } from './use-throttled.ts'

/**
 * Calls `take` with batches of events of these types while the component is mounted. A type that ends in a dot, such as
 * `payment.`, matches all types with that prefix.
 */
export function useLiveEvents(types: readonly string[], take: (events: readonly LiveEvent[]) => void): void {
  const { live } = useWorkspace()
  const latest = useRef(take)
  useEffect(() => {
    latest.current = take
  })
  const wanted = types.join(' ')
  useEffect(() => {
    const names = wanted.split(' ')
    const isWanted = ({ type }: LiveEvent) =>
      names.some((name) => type === name || (name.endsWith('.') && type.startsWith(name)))
    return live.listen((events) => {
      const found = events.filter(isWanted)
      if (found.length > 0) latest.current(found)
    })
  }, [live, wanted])
}

export function useLiveStatus(): LiveStatus {
  const { live } = useWorkspace()
  return useSyncExternalStore(
    (listener) => live.onStatus(listener),
    () => live.status,
  )
}

/** Minimum time between two refreshes of one query. */
const refreshMsMin = 1_000

/** Refreshes the queries under a key after events of these types: at most once a second, and never two at a time. */
export function useRefreshOn(types: readonly string[], queryKey: readonly unknown[]): void {
  const queries = useQueryClient()
  useLiveEvents(
    types,
    useThrottled(refreshMsMin, () => queries.invalidateQueries({ queryKey })),
  )
}

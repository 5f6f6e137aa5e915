import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef, useSyncExternalStore } from 'react'
import { useWorkspace } from '../api/context.ts'
import type { LiveEvent, LiveStatus } from './live-events.ts'
import { usePaced } from './use-paced.ts'

/** Hands over the events of these types (or of all that begin with `payment.`), in batches, while the component is on the page. */
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

/** The least time between two readings of one query, however much happens. */
const refreshMsMin = 1_000

/**
 * Reads the queries under a key again after events of these types: at most once a second, and never before the reading under way has
 * ended.
 */
export function useRefreshOn(types: readonly string[], queryKey: readonly unknown[]): void {
  const queries = useQueryClient()
  useLiveEvents(
    types,
    usePaced(refreshMsMin, () => queries.invalidateQueries({ queryKey })),
  )
}

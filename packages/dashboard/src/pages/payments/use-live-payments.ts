import type { PaymentLog } from '@purser/sdk'
import { hashKey, type QueryKey, useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useRef, useState } from 'react'
import { usePurser } from '../../api/context.ts'
import type { LiveEvent } from '../../live/live-events.ts'
import { useLiveEvents } from '../../live/use-live.ts'
import { useThrottled } from '../../live/use-throttled.ts'
import { type filtersOf, firstPage, mergeFirstPage, type PaymentPages, withStatuses } from './queries.ts'

/** Minimum time between two refreshes of the first page. */
const readMsMin = 400
/** While the last refresh has failed, it is repeated after this time: on a quiet account no event causes another one. */
const retryMs = 5_000
/** Scroll positions up to this count as the top of the page. */
const topPixels = 120

/** Shown with a list whose last refresh failed. */
export const staleRows = 'The list could not be refreshed: newer payments may be missing.'

export interface LivePayments {
  /** Number of new rows that are not shown yet, because the page is scrolled down. */
  readonly waiting: number
  /** New rows, to be highlighted. */
  readonly arrived: ReadonlySet<string>
  /** Whether the last refresh failed, so that newer rows may be missing. */
  readonly isStale: boolean
  readonly show: () => void
}

/**
 * Keeps a list of payments up to date. New rows are added at once while the page is scrolled to the top; otherwise they
 * are added on request, so that the visible rows do not move. Shown rows are updated in place.
 */
export function useLivePayments(
  queryKey: QueryKey,
  filters: ReturnType<typeof filtersOf>,
  shows: 'at-top' | 'always' = 'at-top',
): LivePayments {
  const purser = usePurser()
  const queries = useQueryClient()
  const [waiting, setWaiting] = useState(0)
  const [arrived, setArrived] = useState<ReadonlySet<string>>(new Set())
  const key = hashKey(queryKey)
  const [staleKey, setStaleKey] = useState<string>()
  const reading = useRef<AbortSignal>(undefined)
  // biome-ignore lint/correctness/useExhaustiveDependencies: what was read and counted for another list ends with it
  useEffect(() => {
    const ending = new AbortController()
    reading.current = ending.signal
    return () => {
      ending.abort()
      setWaiting(0)
    }
  }, [key])
  const read = useCallback(async () => {
    const first = await firstPage(purser, filters, undefined, reading.current)
    const old = queries.getQueryData<PaymentPages>(queryKey)
    if (old === undefined) return
    const known = new Set(old.pages.flatMap(({ items }) => items.map(({ id }) => id)))
    const added = first.items.map(({ id }) => id).filter((id) => !known.has(id))
    // The reader may have scrolled since the reading was scheduled.
    if (shows === 'at-top' && window.scrollY > topPixels) return setWaiting((count) => Math.max(count, added.length))
    setArrived(new Set(added))
    queries.setQueryData<PaymentPages>(queryKey, mergeFirstPage(old, first, filters.status))
    setWaiting(0)
  }, [purser, queries, queryKey, filters, shows])
  const refresh = useCallback(() => {
    const succeed = () => setStaleKey((stale) => (stale === key ? undefined : stale))
    const signal = reading.current
    return read().then(succeed, () => signal?.aborted !== true && setStaleKey(key))
  }, [read, key])
  const schedule = useThrottled(readMsMin, refresh)
  const isStale = staleKey === key
  useEffect(() => {
    if (!isStale) return
    const retry = setInterval(schedule, retryMs)
    return () => clearInterval(retry)
  }, [isStale, schedule])
  useLiveEvents(['payment.'], (events) => {
    const statuses = new Map(events.flatMap(statusOf))
    if (statuses.size > 0)
      queries.setQueryData<PaymentPages>(queryKey, (old) => (old === undefined ? old : withStatuses(old, statuses)))
    // A payment whose status changes enters the list of its new status and leaves that of the old one.
    const entered = events.filter(({ type }) => enteredStatus(type) === (filters.status ?? 'verified')).length
    if (entered === 0 && filters.status === undefined) return
    if (shows === 'always' || window.scrollY <= topPixels) schedule()
    else setWaiting((count) => count + entered)
  })
  const show = useCallback(() => {
    window.scrollTo({ top: 0 })
    void refresh()
  }, [refresh])
  return { waiting, arrived, isStale, show }
}

const statusOfType: Readonly<Record<string, PaymentLog['status']>> = {
  'payment.settled': 'settled',
  'payment.settlement_failed': 'settlement_failed',
}

function enteredStatus(type: string): PaymentLog['status'] | undefined {
  return type === 'payment.received' ? 'verified' : statusOfType[type]
}

function statusOf({ type, payload }: LiveEvent): readonly (readonly [string, Partial<PaymentLog>])[] {
  const status = statusOfType[type]
  const { paymentId, txHash } = payload
  if (status === undefined || typeof paymentId !== 'string') return []
  return [[paymentId, { status, ...(typeof txHash === 'string' && { txHash }) }]]
}

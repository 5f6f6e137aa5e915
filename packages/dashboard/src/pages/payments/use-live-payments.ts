import type { PaymentLog } from '@purser/sdk'
import { type QueryKey, useQueryClient } from '@tanstack/react-query'
import { useCallback, useState } from 'react'
import { usePurser } from '../../api/context.ts'
import type { LiveEvent } from '../../live/live-events.ts'
import { useLiveEvents } from '../../live/use-live.ts'
import { usePaced } from '../../live/use-paced.ts'
import { type filtersOf, firstPage, mergeFirstPage, type PaymentPages, withStatuses } from './queries.ts'

/** The least time between two readings of the newest page. */
const readMsMin = 400
/** How far down a reader may be and still be at the top. */
const topPixels = 120

export interface LivePayments {
  /** Rows that came and are not shown yet, because the reader has scrolled. */
  readonly waiting: number
  /** Rows that came while one looked, to be marked. */
  readonly arrived: ReadonlySet<string>
  readonly show: () => void
}

/**
 * Keeps a list of payments true while it is looked at. New rows come in at once while the reader is at the top; otherwise they wait
 * until they are wanted, so that what one reads never moves. A row that is shown changes in its place.
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
  const read = useCallback(async () => {
    const first = await firstPage(purser, filters)
    const old = queries.getQueryData<PaymentPages>(queryKey)
    if (old === undefined) return
    const known = new Set(old.pages.flatMap(({ items }) => items.map(({ id }) => id)))
    setArrived(new Set(first.items.map(({ id }) => id).filter((id) => !known.has(id))))
    queries.setQueryData<PaymentPages>(queryKey, mergeFirstPage(old, first, filters.status))
    setWaiting(0)
  }, [purser, queries, queryKey, filters])
  const schedule = usePaced(readMsMin, read)
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
    void read().catch(() => undefined)
  }, [read])
  return { waiting, arrived, show }
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

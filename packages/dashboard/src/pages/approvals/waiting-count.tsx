import { useQuery } from '@tanstack/react-query'
import { usePurser } from '../../api/context.ts'
import { useRefreshOn } from '../../live/use-live.ts'
import { approvalsKey, shownWaitingMax, waitingQuery } from './queries.ts'

/** The number of requests that wait for an approval; nothing if there are none. */
export function WaitingCount() {
  const { data } = useQuery(waitingQuery(usePurser()))
  useRefreshOn(['approval.'], approvalsKey)
  const waiting = data?.items.length ?? 0
  if (waiting === 0) return null
  return (
    <span className="num inline-flex h-4.5 min-w-4.5 items-center justify-center rounded-full bg-held-soft px-1 text-xs font-semibold text-held">
      {waiting > shownWaitingMax ? `${shownWaitingMax}+` : waiting}
      <span className="sr-only"> waiting</span>
    </span>
  )
}

import { useEffect } from 'react'
import { useWorkspace } from '../api/context.ts'
import type { LiveStatus } from '../live/live-events.ts'
import { useLiveStatus } from '../live/use-live.ts'
import { classes } from '../ui/classes.ts'

const words: Readonly<Record<LiveStatus, { readonly text: string; readonly dot: string }>> = {
  connecting: { text: 'Connecting', dot: 'bg-pending' },
  live: { text: 'Live', dot: 'bg-settled' },
  reconnecting: { text: 'Reconnecting', dot: 'bg-held' },
  off: { text: 'Not live. Connect again', dot: 'bg-failed' },
}

/** Shows whether the page receives live events, with a button to reconnect. */
export function LiveDot({ full }: { full: boolean }) {
  const { live } = useWorkspace()
  const status = useLiveStatus()
  // Keeps the event stream open on every page, also on pages without live content.
  useEffect(() => live.listen(() => undefined), [live])
  const { text, dot } = words[status]
  const label = <span className={full ? '' : 'max-lg:sr-only'}>{text}</span>
  const look = classes(
    'flex h-7 items-center gap-2.5 rounded-control px-3 text-sm text-ink-2',
    !full && 'max-lg:justify-center',
  )
  if (status === 'off')
    return (
      <button type="button" className={classes(look, 'hover:bg-well')} onClick={() => live.retry()}>
        <span className={classes('size-2 shrink-0 rounded-full', dot)} /> {label}
      </button>
    )
  return (
    <span role="status" className={look}>
      <span className={classes('size-2 shrink-0 rounded-full', dot)} /> {label}
    </span>
  )
}

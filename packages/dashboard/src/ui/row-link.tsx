import type { MouseEvent, ReactNode } from 'react'
import { useWorkspace } from '../api/context.ts'
import { base } from '../api/scope.ts'

/**
 * The link of a row to its page, for a keyboard and for a new tab. A plain click is left to the row, which opens the
 * sheet. It is an anchor and not the router's link: a list has hundreds of rows, and each router link would subscribe
 * to every change of the URL.
 */
export function RowLink({ to, children }: { to: string; children: ReactNode }) {
  const { environment } = useWorkspace()
  return (
    <a href={`${base}/${environment}${to}`} onClick={leaveToRow} className="flex min-w-0 items-baseline gap-2">
      {children}
    </a>
  )
}

function leaveToRow(event: MouseEvent): void {
  if (!event.metaKey && !event.ctrlKey && !event.shiftKey) event.preventDefault()
}

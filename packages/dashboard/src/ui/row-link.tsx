import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'

/** The link of a row to its page, for a keyboard and for a new tab. A plain click is left to the row, which opens the sheet. */
export function RowLink({ to, children }: { to: string; children: ReactNode }) {
  return (
    <Link
      to={to}
      onClick={(event) => {
        if (!event.metaKey && !event.ctrlKey && !event.shiftKey) event.preventDefault()
      }}
      className="flex min-w-0 items-baseline gap-2"
    >
      {children}
    </Link>
  )
}
